// The uploads to a box, with their progress.
import type { BoxFiles } from '../../data/box-files.ts'
import { formatBytes } from '../../data/sizes.ts'
import { isActive, MAX_UPLOAD_BYTES, type Upload } from '../../data/uploads.ts'
import { showHidden } from '../../data/visible-text.ts'
import { focusHeading } from '../focus-heading.ts'
import { Problem } from '../problem.tsx'

/** More are counted, not listed. */
const MAX_LISTED = 100

const LABELS: Record<Upload['state'], string> = {
  waiting: 'waits',
  sending: 'is sent',
  exists: 'exists on the box',
  done: 'uploaded',
  failed: 'failed',
  canceled: 'canceled',
}

export function UploadList({ boxFiles }: { boxFiles: BoxFiles }) {
  const { uploadList, uploads } = boxFiles
  const list = uploadList.value
  if (list.length === 0) return null
  const done = list.filter(({ state }) => state === 'done').length
  // What needs a decision comes first.
  const open = list.filter(({ state }) => state !== 'done')
  const shown = [...open, ...list.filter(({ state }) => state === 'done')].slice(0, MAX_LISTED)
  return (
    <section aria-label="Uploads">
      <h2>Uploads</h2>
      <p role="status">
        {done} of {list.length} files uploaded
      </p>
      <ul class="uploads">
        {shown.map((upload) => (
          <UploadItem key={upload.id} upload={upload} uploads={uploads} />
        ))}
      </ul>
      {list.length > shown.length && <p>{list.length - shown.length} more files are not listed.</p>}
      {list.some((upload) => !isActive(upload)) && (
        <button
          type="button"
          onClick={() => {
            uploads.clear()
            focusHeading()
          }}
        >
          Clear the list
        </button>
      )}
    </section>
  )
}

function UploadItem({ upload, uploads }: { upload: Upload; uploads: BoxFiles['uploads'] }) {
  const { id, path, size, state, sent, error } = upload
  const name = showHidden(path)
  return (
    <li>
      {name} <small>{formatBytes(size)}</small> {LABELS[state]}{' '}
      {state === 'sending' && <progress value={sent} max={size || 1} aria-label={`Progress of ${name}`} />}
      {isActive(upload) && (
        <button type="button" aria-label={`Cancel ${name}`} onClick={() => uploads.cancel(id)}>
          Cancel
        </button>
      )}
      {state === 'exists' && (
        <button type="button" aria-label={`Replace ${name}`} onClick={() => uploads.retry(id)}>
          Replace
        </button>
      )}
      {state === 'failed' && size <= MAX_UPLOAD_BYTES && (
        <button type="button" aria-label={`Upload ${name} again`} onClick={() => uploads.retry(id)}>
          Try again
        </button>
      )}
      {error !== null && <Problem error={error} />}
    </li>
  )
}
