// The course of a value as a small area. Screen readers get its label.

export type SparklineProps = {
  label: string
  /** With equal distances in time; null: not measured. */
  values: readonly (number | null)[]
  /** The value at the top. */
  top: number
}

/** Units of the drawing, which is as wide as its container. */
const WIDTH = 120
const HEIGHT = 24

export function Sparkline({ label, values, top }: SparklineProps) {
  const step = WIDTH / Math.max(1, values.length - 1)
  const y = (value: number) => HEIGHT - 1 - (Math.min(value, top) / top) * (HEIGHT - 2)
  /** Connected values: a gap ends a line. */
  const runs: { x: number; y: number }[][] = [[]]
  for (const [index, value] of values.entries())
    if (value === null) runs.push([])
    else runs.at(-1)?.push({ x: index * step, y: y(value) })
  const lines = runs.filter((run) => run.length > 0)
  const draw = (run: { x: number; y: number }[]) =>
    run.map((point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join('L')
  return (
    <svg
      class="sparkline"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      {lines.map((run) => (
        <>
          <path
            class="area"
            d={`M${run[0]?.x.toFixed(1)} ${HEIGHT}L${draw(run)}L${run.at(-1)?.x.toFixed(1)} ${HEIGHT}Z`}
          />
          <path class="line" d={`M${draw(run)}`} />
        </>
      ))}
    </svg>
  )
}
