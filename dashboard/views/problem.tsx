// An error of a request, with the message and the code of the API.
import type { BoxwoodError } from '../../client/http/errors.ts'
import { nameField } from '../data/field-names.ts'
import { showHidden } from '../data/visible-text.ts'

export type ProblemProps = {
  error: BoxwoodError | null
  /** Of the form whose request has failed. */
  fields?: readonly { name: string; label: string }[]
}

export function Problem({ error, fields = [] }: ProblemProps) {
  return (
    <div role="alert">
      {error && (
        <p class="problem">
          {nameField(showHidden(error.message), fields)
            // Messages have commands and values between backquotes.
            .split('`')
            .map((text, index) => (index % 2 === 0 ? text : <code key={index}>{text}</code>))}{' '}
          <code>{error.code}</code>
          {error.requestId !== null && <> Request {error.requestId}</>}
        </p>
      )}
    </div>
  )
}
