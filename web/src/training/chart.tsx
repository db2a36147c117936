/** A curve over epochs, drawn as SVG; the same figures are a table beside it. */

import type { ReactNode } from "react";
import type { TrainingPoint } from "../api/types";
import { number } from "../base/format";
import { axis, marks } from "./words";

const [WIDTH, HEIGHT] = [340, 170];
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 10, 12, 24];

interface ChartProps {
  name: string;
  points: readonly TrainingPoint[];
  value: (point: TrainingPoint) => number;
  kept?: number | null; // the epoch whose model was kept
}

export function Chart({ name, points, value, kept }: ChartProps): ReactNode {
  const values = points.map(value);
  const [first, last] = [points[0]!, points.at(-1)!];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const ys = marks(low, high);
  const [bottom, top] = [ys[0]!, ys.at(-1)!];
  const span = Math.max(1, last.epoch - first.epoch);
  const x = (epoch: number): number => LEFT + ((epoch - first.epoch) / span) * (WIDTH - LEFT - RIGHT);
  const y = (figure: number): number => TOP + ((top - figure) / (top - bottom)) * (HEIGHT - TOP - BOTTOM);
  const line = points.map((p) => `${x(p.epoch).toFixed(1)},${y(value(p)).toFixed(1)}`).join(" ");
  const best = points.find((p) => p.epoch === kept);
  const told = `${name}: ${short(values[0]!)} in epoch ${number(first.epoch)}, ${short(values.at(-1)!)} in epoch ${number(last.epoch)}${best ? `, ${short(value(best))} in the epoch that was kept` : ""}`;
  return (
    <figure className="chart">
      <figcaption>{name}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={told}>
        {ys.map((mark) => (
          <g key={mark}>
            <line className="chart-mark" x1={LEFT} x2={WIDTH - RIGHT} y1={y(mark)} y2={y(mark)} />
            <text x={LEFT - 6} y={y(mark) + 4} textAnchor="end">
              {axis(mark, ys)}
            </text>
          </g>
        ))}
        <text x={LEFT} y={HEIGHT - 6}>
          {`epoch ${number(first.epoch)}`}
        </text>
        {last.epoch > first.epoch && (
          <text x={WIDTH - RIGHT} y={HEIGHT - 6} textAnchor="end">
            {number(last.epoch)}
          </text>
        )}
        <polyline className="chart-line" points={line} />
        <circle className={best ? "chart-best" : "chart-last"} cx={x((best ?? last).epoch)} cy={y(value(best ?? last))} r="4" />
      </svg>
    </figure>
  );
}

/** MAP and loss side by side; nothing where there are no epochs. */
export function Curves({ points, kept = null }: { points: readonly TrainingPoint[]; kept?: number | null }): ReactNode {
  if (!points.length) return null;
  return (
    <>
      <div className="charts">
        <Chart name="MAP on held-out pictures" points={points} value={(p) => p.MAP} kept={kept} />
        <Chart name="Loss" points={points} value={(p) => p.loss} kept={kept} />
      </div>
      <details>
        <summary>The same as a table</summary>
        <div className="scrolled" tabIndex={0} role="region" aria-label="Figures of the epochs">
          <table>
            <thead>
              <tr>
                <th scope="col">Epoch</th>
                <th scope="col">MAP</th>
                <th scope="col">Loss</th>
              </tr>
            </thead>
            <tbody>
              {points.map((p) => (
                <tr key={p.epoch}>
                  <th scope="row">
                    {number(p.epoch)}
                    {p.epoch === kept && " (kept)"}
                  </th>
                  <td>{p.MAP.toFixed(3)}</td>
                  <td>{p.loss.toPrecision(3)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}

function short(value: number): string {
  return Math.abs(value) >= 10_000 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
}
