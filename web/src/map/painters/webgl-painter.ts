/**
 * Painter with WebGL 2: one buffer of positions and one of states, drawn in two calls, marked points last.
 * Libraries for this (regl and those on it) build code from text, which the content security policy forbids.
 */

import type { PointColours } from "./colours";
import type { Frame, Painter } from "./painter";
import { SIDE } from "../data/points";

const VERTEX = `#version 300 es
in vec2 at;
in vec2 state;
uniform vec2 origin, stretch;
uniform float size, turn, looking;
uniform vec3 plain, faint, accepted, rejected, low, high;
out vec3 inner;
flat out float cross_, ring;
void main() {
  float code = state.x, chosen = state.y;
  bool marked = code > 0.5 || chosen > 0.5;
  if (marked != (turn > 0.5)) { gl_Position = vec4(2, 2, 0, 1); gl_PointSize = 0.0; return; }
  gl_Position = vec4((at * ${SIDE}.0 - origin) * stretch + vec2(-1, 1), 0, 1);
  gl_PointSize = size * (chosen > 0.5 ? 1.9 : code > 0.5 ? 1.4 : 1.0);
  inner = code > 2.5 ? mix(low, high, (code - 3.0) / 252.0) : code > 1.5 ? accepted : code > 0.5 ? rejected : looking > 0.5 ? faint : plain;
  cross_ = code > 0.5 && code < 1.5 ? 1.0 : 0.0;
  ring = chosen;
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
in vec3 inner;
flat in float cross_, ring;
uniform vec3 picked;
uniform float most;
out vec4 colour;
void main() {
  vec2 p = gl_PointCoord * 2.0 - 1.0;
  float far = length(p);
  float cover = smoothstep(1.0, 0.7, far) * most;
  if (cross_ > 0.5 && abs(abs(p.x) - abs(p.y)) > 0.42 && ring < 0.5) cover = 0.0;
  if (cover < 0.02) discard;
  colour = vec4((ring > 0.5 && far > 0.5 ? picked : inner) * cover, cover);
}`;

/** Create the painter; null without a graphics card that is faster than the processor. */
export function createWebglPainter(onContextLoss: () => void): Painter | null {
  const canvas = document.createElement("canvas");
  const gl = canvas.getContext("webgl2", { antialias: false, depth: false, failIfMajorPerformanceCaveat: true });
  if (!gl || isSoftwareRenderer(gl)) return null;
  const program = linkProgram(gl);
  if (!program) return null;
  gl.useProgram(program);
  const locate = (name: string): WebGLUniformLocation | null => gl.getUniformLocation(program, name);
  const [atBuffer, stateBuffer] = [gl.createBuffer(), gl.createBuffer()];
  const bind = (buffer: WebGLBuffer, name: string, type: number, normal: boolean): void => {
    const location = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, 2, type, normal, 0, 0);
  };
  bind(atBuffer, "at", gl.UNSIGNED_SHORT, true);
  bind(stateBuffer, "state", gl.UNSIGNED_BYTE, false);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  let [n, hasMarks] = [0, false];
  const handleContextLoss = (event: Event): void => {
    event.preventDefault();
    onContextLoss();
  };
  canvas.addEventListener("webglcontextlost", handleContextLoss);
  return {
    canvas,
    kind: "webgl",
    setPoints: (xy) => {
      n = xy.length / 2;
      gl.bindBuffer(gl.ARRAY_BUFFER, atBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, xy, gl.STATIC_DRAW);
      gl.bindBuffer(gl.ARRAY_BUFFER, stateBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, new Uint8Array(2 * n), gl.DYNAMIC_DRAW);
      hasMarks = false;
    },
    setStates: (codes, selection) => {
      const states = new Uint8Array(2 * n);
      for (let i = 0; i < n; i += 1) {
        states[2 * i] = codes[i]!;
        states[2 * i + 1] = selection[i]!;
      }
      hasMarks = states.some((value) => value > 0);
      gl.bindBuffer(gl.ARRAY_BUFFER, stateBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, states, gl.DYNAMIC_DRAW);
    },
    setColours: (colours: PointColours) => {
      for (const name of ["plain", "faint", "accepted", "rejected", "low", "high"] as const)
        gl.uniform3fv(locate(name), colours[name].map((channel) => channel / 255));
      gl.uniform3fv(locate("picked"), colours.selected.map((channel) => channel / 255));
    },
    draw: (frame: Frame) => {
      if (canvas.width !== frame.width || canvas.height !== frame.height) {
        canvas.width = frame.width;
        canvas.height = frame.height;
      }
      gl.viewport(0, 0, frame.width, frame.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(locate("origin"), frame.left, frame.top);
      gl.uniform2f(locate("stretch"), (2 * frame.scale) / frame.width, (-2 * frame.scale) / frame.height);
      gl.uniform1f(locate("size"), frame.size + 1);
      gl.uniform1f(locate("looking"), frame.hasLabel ? 1 : 0);
      for (const pass of hasMarks ? [0, 1] : [0]) {
        gl.uniform1f(locate("turn"), pass);
        gl.uniform1f(locate("most"), pass ? 1 : frame.opacity);
        gl.drawArrays(gl.POINTS, 0, n);
      }
    },
    close: () => {
      canvas.removeEventListener("webglcontextlost", handleContextLoss);
      gl.getExtension("WEBGL_lose_context")?.loseContext();
    },
  };
}

/** True if the processor emulates WebGL, which takes ten times as long as the canvas painter. */
function isSoftwareRenderer(gl: WebGL2RenderingContext): boolean {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  return info !== null && /swiftshader|llvmpipe|software|basic render/i.test(String(gl.getParameter(info.UNMASKED_RENDERER_WEBGL)));
}

function linkProgram(gl: WebGL2RenderingContext): WebGLProgram | null {
  const program = gl.createProgram();
  for (const [kind, text] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(kind);
    if (!shader) return null;
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}
