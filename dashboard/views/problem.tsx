// An error of a request, with the message and the code of the API.
import type { BoxwoodError } from '../../client/http/errors.ts'
import { showHidden } from '../data/visible-text.ts'

export function Problem({ error }: { error: BoxwoodError | null }) {
  return (
    <div role="alert">
      {error && (
        <p class="problem">
          {showHidden(error.message)} <code>{error.code}</code>
          {error.requestId !== null && <> Request {error.requestId}</>}
        </p>
      )}
    </div>
  )
}
