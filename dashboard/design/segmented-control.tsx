// A choice of one of a few values, as buttons beside each other.

export type SegmentedControlProps<Value extends string> = {
  label: string
  options: readonly { value: Value; label: string /** A number, or a size. */; count?: number | string }[]
  value: Value
  onChange(value: Value): void
}

export function SegmentedControl<Value extends string>(props: SegmentedControlProps<Value>) {
  const { label, options, value, onChange } = props
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">{label}</legend>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
          {option.count !== undefined && <span class="count">{option.count}</span>}
        </button>
      ))}
    </fieldset>
  )
}
