// A modal dialog with the fields of an action. It stays open, with what was typed, when the request fails.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { type RequestError, toRequestError } from '../api/errors.ts'
import { Command } from './command.tsx'
import { Problem } from './problem.tsx'

export type Field = {
  name: string
  label: string
  hint?: string
  /** The choices; the empty value is the default. */
  options?: readonly { value: string; label: string }[]
  value?: string
}

export type FormDialogProps = {
  title: string
  children?: ComponentChildren
  fields: readonly Field[]
  submitLabel: string
  /** The command that does the same. */
  formatCommand(values: Record<string, string>): string
  /** Whether the values may be sent. */
  accepts?(values: Record<string, string>): boolean
  submit(values: Record<string, string>): Promise<void>
  onClose(): void
}

export function FormDialog(props: FormDialogProps) {
  const { title, children, fields, submitLabel, formatCommand, accepts, submit, onClose } = props
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  const values = useSignal(Object.fromEntries(fields.map(({ name, value = '' }) => [name, value])))
  const error = useSignal<RequestError | null>(null)
  const isBusy = useSignal(false)
  useEffect(() => dialog.current?.showModal(), [])

  async function send(event: Event) {
    event.preventDefault()
    if (isBusy.value || accepts?.(values.value) === false) return
    isBusy.value = true
    error.value = null
    try {
      await submit(values.value)
    } catch (reason) {
      error.value = toRequestError(reason)
    } finally {
      isBusy.value = false
    }
  }

  const change = (name: string) => (event: { currentTarget: { value: string } }) => {
    values.value = { ...values.value, [name]: event.currentTarget.value }
  }
  return (
    <dialog ref={dialog} aria-labelledby={`${id}-title`} onClose={onClose}>
      <form onSubmit={send}>
        <h2 id={`${id}-title`}>{title}</h2>
        {children}
        {fields.map(({ name, label, hint, options }) => (
          <p key={name}>
            <label for={`${id}-${name}`}>{label}</label>
            {options ? (
              <select id={`${id}-${name}`} value={values.value[name]} onChange={change(name)}>
                {options.map((option) => (
                  <option key={option.value} value={option.value}>
                    {option.label}
                  </option>
                ))}
              </select>
            ) : (
              <input
                id={`${id}-${name}`}
                value={values.value[name]}
                onInput={change(name)}
                autocomplete="off"
                autocapitalize="off"
                spellcheck={false}
                aria-describedby={hint && `${id}-${name}-hint`}
              />
            )}
            {hint && <small id={`${id}-${name}-hint`}>{hint}</small>}
          </p>
        ))}
        <p>
          <Command text={formatCommand(values.value)} />
        </p>
        <Problem error={error.value} />
        <p class="buttons">
          <button type="submit" class="primary" disabled={accepts?.(values.value) === false}>
            {submitLabel}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </p>
      </form>
    </dialog>
  )
}
