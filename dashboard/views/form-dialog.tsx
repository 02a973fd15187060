// A modal dialog with the fields of an action. It closes when the request has succeeded, and stays open, with what was typed, when
// the request fails.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import { createRandomId } from '../../client/http/calls.ts'
import { Command } from './command.tsx'
import { type Field, FormField } from './form-field.tsx'
import { Problem } from './problem.tsx'
import { SignedOut } from './signed-out.tsx'
import { useAction } from './use-action.ts'
import { useModal } from './use-modal.ts'

export type FormValues = Record<string, string>

export type FormDialogProps = {
  title: string
  children?: ComponentChildren
  fields: readonly Field[]
  submitLabel: string
  /** The command that does the same. */
  formatCommand?(values: FormValues): string
  /** Whether the values may be sent. */
  accepts?(values: FormValues): boolean
  /** Why the request will probably be refused, or which effect it has. */
  explain?(values: FormValues): string | null
  /** Why the option of the field will probably be refused, in a few words for its label; null: no reason is known. */
  explainOption?(name: string, option: string, values: FormValues): string | null
  /** @param key the idempotency key of the dialog: a second attempt after a lost response has the effect of the first one */
  submit(values: FormValues, key: string): Promise<void>
  /** Called when the user closes the dialog, and after the request. Not when another dialog has replaced this one since. */
  onClose(): void
}

export function FormDialog(props: FormDialogProps) {
  const {
    title,
    children,
    fields,
    submitLabel,
    formatCommand,
    accepts,
    explain,
    explainOption,
    submit,
    onClose,
  } = props
  const id = useId()
  const dialog = useModal(onClose)
  const key = useRef('')
  const values = useSignal<FormValues>(
    Object.fromEntries(fields.map(({ name, value = '' }) => [name, value])),
  )
  const { error, run } = useAction()

  function send(event: Event) {
    event.preventDefault()
    if (accepts?.(values.value) === false) return
    void run(async () => {
      key.current ||= createRandomId()
      await submit(values.value, key.current)
      values.value = withoutSecrets(values.value, fields)
      if (dialog.current !== null) onClose()
    })
  }

  const labelOptions = ({ options, ...field }: Field): Field => ({
    ...field,
    ...(options && {
      options: options.map((option) => {
        const reason = explainOption?.(field.name, option.value, values.value) ?? null
        if (reason === null) return option
        return option.detail === undefined
          ? { ...option, label: `${option.label} (${reason})` }
          : { ...option, detail: [...option.detail, reason] }
      }),
    }),
  })
  const show = (field: Field) => (
    <FormField
      key={field.name}
      field={labelOptions(field)}
      id={`${id}-${field.name}`}
      value={values.value[field.name] ?? ''}
      onChange={(value) => {
        const fills = field.options?.find((option) => option.value === value)?.fills
        values.value = { ...values.value, ...fills, [field.name]: value }
      }}
    />
  )
  const shown = fields.filter((field) => field.isShown?.(values.value) ?? true)
  const advanced = shown.filter(({ isAdvanced }) => isAdvanced)
  return (
    <dialog ref={dialog} aria-labelledby={`${id}-title`}>
      <form onSubmit={send}>
        <h2 id={`${id}-title`}>{title}</h2>
        {children}
        {shown.filter(({ isAdvanced }) => !isAdvanced).map(show)}
        {advanced.length > 0 && (
          <details>
            <summary>More settings</summary>
            {advanced.map(show)}
          </details>
        )}
        {formatCommand && (
          <p>
            <small>The same on the command line</small>
            <Command text={formatCommand(values.value)} />
          </p>
        )}
        {explain && <p role="status">{explain(values.value)}</p>}
        <Problem error={error.value} fields={fields} />
        {/* The dialog is modal: the banner of the page cannot be used. */}
        <p role="status">
          <SignedOut />
        </p>
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

const withoutSecrets = (values: FormValues, fields: readonly Field[]): FormValues => ({
  ...values,
  ...Object.fromEntries(fields.filter(({ isSecret }) => isSecret).map(({ name }) => [name, ''])),
})
