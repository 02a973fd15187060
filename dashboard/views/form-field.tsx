// One field of a form: a text, a secret, a choice of one value, or of several.
export type Field = {
  name: string
  label: string
  hint?: string
  /** The choices; the empty value is the default. */
  options?: readonly Option[]
  /** The options are shown beside each other with their details. */
  hasCards?: boolean
  /** Values of a text that a button enters. */
  suggestions?: readonly Option[]
  /** Any number of these may be chosen. The value of the field has one of them per line. */
  choices?: readonly Option[]
  /** A text of several lines. */
  isLong?: boolean
  /** A text that is not shown, and is removed after it was sent. */
  isSecret?: boolean
  /** Shown on demand. */
  isAdvanced?: boolean
  /** The field is shown only with these values of the others. */
  isShown?(values: Readonly<Record<string, string>>): boolean
  value?: string
}

/** `detail`: shown on a card, in a line for each. `fills`: the values that the choice enters into other fields. */
export type Option = {
  value: string
  label: string
  detail?: readonly string[]
  fills?: Readonly<Record<string, string>>
}

/** The chosen values of a field with `choices`. */
export const splitLines = (value = ''): string[] => value.split('\n').filter(Boolean)

export type FormFieldProps = { field: Field; id: string; value: string; onChange(value: string): void }

export function FormField(props: FormFieldProps) {
  const { field, id, value, onChange } = props
  const { label, hint, options, choices } = field
  if (choices !== undefined) return <Choices {...props} choices={choices} />
  if (options !== undefined && field.hasCards) return <Cards {...props} options={options} />
  const hintId = hint && `${id}-hint`
  return (
    <p>
      <label for={id}>{label}</label>
      {options ? (
        <select
          id={id}
          value={value}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
          aria-describedby={hintId}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : field.isLong ? (
        <textarea
          id={id}
          rows={3}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
          spellcheck={false}
          aria-describedby={hintId}
        />
      ) : (
        <TextInput
          isSecret={field.isSecret ?? false}
          id={id}
          hintId={hintId}
          value={value}
          onChange={onChange}
        />
      )}
      {field.suggestions && (
        <span class="suggestions">
          {field.suggestions.map((suggestion) => (
            <button key={suggestion.value} type="button" onClick={() => onChange(suggestion.value)}>
              {suggestion.label}
            </button>
          ))}
        </span>
      )}
      {hint && <small id={hintId}>{hint}</small>}
    </p>
  )
}

function Cards({
  field: { label },
  id,
  value,
  onChange,
  options,
}: FormFieldProps & { options: readonly Option[] }) {
  return (
    <fieldset class="choice-cards">
      <legend>{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            name={id}
            class="visually-hidden"
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <strong>{option.label}</strong>
          {option.detail?.map((line) => (
            <small key={line}>{line}</small>
          ))}
        </label>
      ))}
    </fieldset>
  )
}

type TextInputProps = {
  isSecret: boolean
  id: string
  hintId: string | undefined
  value: string
  onChange(value: string): void
}

function TextInput({ isSecret, id, hintId, value, onChange }: TextInputProps) {
  const props = {
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => onChange(currentTarget.value),
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    'aria-describedby': hintId,
  } as const
  return isSecret ? (
    <input type="password" id={id} value={value} {...props} />
  ) : (
    <input id={id} value={value} {...props} />
  )
}

function Choices({
  field: { label, hint },
  id,
  value,
  onChange,
  choices,
}: FormFieldProps & { choices: readonly Option[] }) {
  const chosen = splitLines(value)
  const toggle = (name: string, isChosen: boolean) =>
    onChange((isChosen ? [...chosen, name] : chosen.filter((other) => other !== name)).join('\n'))
  return (
    <fieldset aria-describedby={hint && `${id}-hint`}>
      <legend>{label}</legend>
      <div class="choices">
        {choices.map((choice) => (
          <label key={choice.value}>
            <input
              type="checkbox"
              checked={chosen.includes(choice.value)}
              onChange={({ currentTarget }) => toggle(choice.value, currentTarget.checked)}
            />{' '}
            {choice.label}
          </label>
        ))}
      </div>
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </fieldset>
  )
}
