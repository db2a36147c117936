/** A curve over epochs, drawn as SVG; the same figures are a table beside it. */

import type { ReactNode } from "react";
import type { TrainingPoint } from "../api/types";
import { formatNumber } from "../base/format";
import { formatTick, computeTicks } from "./messages";

const [WIDTH, HEIGHT] = [340, 170];
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 10, 12, 24];

interface ChartProps {
  name: string;
  points: readonly TrainingPoint[];
  value: (point: TrainingPoint) => number;
  bestEpoch?: number | null; // the epoch that the saved model comes from
}

export function Chart({ name, points, value, bestEpoch }: ChartProps): ReactNode {
  const values = points.map(value);
  const [firstPoint, lastPoint] = [points[0]!, points.at(-1)!];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const ticks = computeTicks(low, high);
  const [bottom, top] = [ticks[0]!, ticks.at(-1)!];
  const span = Math.max(1, lastPoint.epoch - firstPoint.epoch);
  const x = (epoch: number): number => LEFT + ((epoch - firstPoint.epoch) / span) * (WIDTH - LEFT - RIGHT);
  const y = (figure: number): number => TOP + ((top - figure) / (top - bottom)) * (HEIGHT - TOP - BOTTOM);
  const line = points.map((p) => `${x(p.epoch).toFixed(1)},${y(value(p)).toFixed(1)}`).join(" ");
  const bestPoint = points.find((p) => p.epoch === bestEpoch);
  const summary = `${name}: ${formatShort(values[0]!)} in epoch ${formatNumber(firstPoint.epoch)}, ${formatShort(values.at(-1)!)} in epoch ${formatNumber(lastPoint.epoch)}${bestPoint ? `, ${formatShort(value(bestPoint))} in the epoch that was kept` : ""}`;
  return (
    <figure className="chart">
      <figcaption>{name}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={summary}>
        {ticks.map((tick) => (
          <g key={tick}>
            <line className="chart-mark" x1={LEFT} x2={WIDTH - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick) + 4} textAnchor="end">
              {formatTick(tick, ticks)}
            </text>
          </g>
        ))}
        <text x={LEFT} y={HEIGHT - 6}>
          {`epoch ${formatNumber(firstPoint.epoch)}`}
        </text>
        {lastPoint.epoch > firstPoint.epoch && (
          <text x={WIDTH - RIGHT} y={HEIGHT - 6} textAnchor="end">
            {formatNumber(lastPoint.epoch)}
          </text>
        )}
        <polyline className="chart-line" points={line} />
        <circle className={bestPoint ? "chart-best" : "chart-last"} cx={x((bestPoint ?? lastPoint).epoch)} cy={y(value(bestPoint ?? lastPoint))} r="4" />
      </svg>
    </figure>
  );
}

/** MAP and loss side by side; null without epochs. */
export function Curves({ points, bestEpoch = null }: { points: readonly TrainingPoint[]; bestEpoch?: number | null }): ReactNode {
  if (!points.length) return null;
  return (
    <>
      <div className="charts">
        <Chart name="MAP on held-out pictures" points={points} value={(p) => p.MAP} bestEpoch={bestEpoch} />
        <Chart name="Loss" points={points} value={(p) => p.loss} bestEpoch={bestEpoch} />
      </div>
      <details>
        <summary>As a table</summary>
        <div className="scroll-box" tabIndex={0} role="region" aria-label="Figures of the epochs">
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
                    {formatNumber(p.epoch)}
                    {p.epoch === bestEpoch && " (kept)"}
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

function formatShort(value: number): string {
  return Math.abs(value) >= 10_000 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
}
