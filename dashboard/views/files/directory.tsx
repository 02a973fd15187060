// A directory of a box: its entries with their actions, and the target of uploads.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import type { FileEntry } from '../../../shared/api/files.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import { formatAge } from '../../data/age.ts'
import { getBoxFiles } from '../../data/box-files.ts'
import { readChosen, readDropped, type Selection } from '../../data/dropped-files.ts'
import { FILE_SORTS, type FileSort, HOME, joinPath, sortEntries } from '../../data/files.ts'
import { getCoordinatorTime, now } from '../../data/live.ts'
import { quoteShell } from '../../data/quote-shell.ts'
import { Command } from '../command.tsx'
import { Problem } from '../problem.tsx'
import { Breadcrumb } from './breadcrumb.tsx'
import { EntryTable } from './entry-table.tsx'
import { type FileAction, FileDialog } from './file-dialog.tsx'

type Listing = {
  path: string
  entries: FileEntry[]
  /** How many entries are before these. */
  skipped: number
  nextCursor: string | null
  at: number
}

/** More entries would stop the browser: further ones replace the first ones. */
const MAX_SHOWN = 2000

export function DirectoryView({ box, path }: { box: Box; path: string }) {
  const { files, uploads, uploadList } = getBoxFiles(box.id)
  const listing = useSignal<Listing | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const sort = useSignal<FileSort>('name')
  const action = useSignal<FileAction | null>(null)

  async function load(cursor: string | null = null): Promise<void> {
    try {
      const page = await files.list(path, cursor)
      const before = cursor === null ? null : listing.value
      const entries = [...(before?.entries ?? []), ...page.entries]
      listing.value = {
        path: page.path,
        entries: entries.slice(-MAX_SHOWN),
        skipped: (before?.skipped ?? 0) + Math.max(0, entries.length - MAX_SHOWN),
        nextCursor: page.nextCursor,
        at: getCoordinatorTime(),
      }
      error.value = null
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    }
  }

  const uploadCount = uploadList.value.filter(({ state }) => state === 'done').length
  useEffect(() => void load(), [uploadCount])

  const add = (selection: Selection) => uploads.add(selection.files, selection.directories)
  const { value } = listing
  return (
    <>
      <Breadcrumb boxName={box.hostname} path={value?.path ?? path} file={null} />
      <p class="tools">
        <button type="button" onClick={() => void load()}>
          Refresh
        </button>
        {value !== null && (
          <button
            type="button"
            onClick={() => {
              action.value = { kind: 'mkdir', directory: value.path }
            }}
          >
            Create a directory
          </button>
        )}
        <label>
          Sort by{' '}
          <select
            value={sort}
            onChange={({ currentTarget }) => {
              sort.value = currentTarget.value as FileSort
            }}
          >
            {Object.entries(FILE_SORTS).map(([key, label]) => (
              <option key={key} value={key}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <Command
          text={`box files ls ${box.hostname}${path === HOME ? '' : ` ${quoteShell(value?.path ?? path)}`}`}
        />
      </p>
      {value !== null && <UploadTarget directory={value.path} boxName={box.hostname} add={add} />}
      <Problem error={error.value} />
      {value === null ? (
        error.value === null && <p>Loading the directory.</p>
      ) : (
        <>
          <p>
            {formatCount(value)}, read {formatAge(now.value - value.at)} ago
            {value.skipped > 0 && (
              <>
                {' '}
                <button type="button" onClick={() => void load()}>
                  Show the first entries
                </button>
              </>
            )}
          </p>
          <EntryTable
            box={box}
            directory={value.path}
            entries={sortEntries(value.entries, sort.value)}
            onAction={(next) => {
              action.value = next
            }}
          />
          {value.nextCursor !== null && (
            <button type="button" onClick={() => void load(value.nextCursor)}>
              Load more entries
            </button>
          )}
        </>
      )}
      {action.value !== null && (
        <FileDialog
          box={box}
          action={action.value}
          onDone={() => load()}
          onClose={() => {
            action.value = null
          }}
        />
      )}
    </>
  )
}

function formatCount({ entries, skipped, nextCursor }: Listing): string {
  if (entries.length === 0 && skipped === 0) return 'The directory is empty'
  const more = nextCursor === null ? '' : ', and more'
  return skipped === 0
    ? `${entries.length} entries${more}`
    : `Entries ${skipped + 1} to ${skipped + entries.length}${more}`
}

type UploadTargetProps = { directory: string; boxName: string; add(selection: Selection): void }

function UploadTarget({ directory, boxName, add }: UploadTargetProps) {
  const isOver = useSignal(false)
  const error = useSignal<BoxwoodError | null>(null)
  return (
    // biome-ignore lint/a11y/noNoninteractiveElementInteractions: the input in it does the same with the keyboard.
    <section
      aria-label="Upload"
      class={`drop-zone${isOver.value ? ' over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault()
        isOver.value = true
      }}
      onDragLeave={() => {
        isOver.value = false
      }}
      onDrop={(event) => {
        event.preventDefault()
        isOver.value = false
        error.value = null
        if (event.dataTransfer !== null)
          readDropped(directory, event.dataTransfer).then(add, (reason) => {
            error.value = toBoxwoodError(reason)
          })
      }}
    >
      <label>
        Upload files{' '}
        <input
          type="file"
          multiple
          onChange={({ currentTarget }) => {
            add(readChosen(directory, currentTarget.files))
            currentTarget.value = ''
          }}
        />
      </label>{' '}
      <small>Or drop files and directories here. At most 1 GiB each.</small>{' '}
      <Command text={`box cp FILE ${boxName}:${quoteShell(joinPath(directory, ''))}`} />
      <Problem error={error.value} />
    </section>
  )
}
