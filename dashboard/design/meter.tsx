// A percentage as a bar and a number. Above 75 % the bar has the colour of a warning, above 90 % that of a problem.

export type MeterProps = {
  label: string
  /** Percent. Null: not known. */
  value: number | null
  /** Beside the bar. Default: the percentage. */
  text?: string
}

export function Meter({ label, value, text }: MeterProps) {
  if (value === null) return <span class="meter-row">–</span>
  const percent = Math.round(value)
  return (
    <span class="meter-row">
      <meter
        class="meter"
        aria-label={label}
        min={0}
        max={100}
        low={75}
        high={90}
        optimum={0}
        value={Math.min(100, percent)}
      />
      <span>{text ?? `${percent} %`}</span>
    </span>
  )
}
