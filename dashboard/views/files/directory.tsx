// A directory of a box: its entries with their actions, and the target of uploads.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import type { FileEntry } from '../../../shared/api/files.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import { formatAge } from '../../data/age.ts'
import { getBoxFiles } from '../../data/box-files.ts'
import { readChosen, readDropped, type Selection } from '../../data/dropped-files.ts'
import { type FileSort, HOME, joinPath, sortEntries } from '../../data/files.ts'
import { getCoordinatorTime, now } from '../../data/live.ts'
import { quoteShell } from '../../data/quote-shell.ts'
import { Icon } from '../../design/icon.tsx'
import { IconButton } from '../../design/icon-button.tsx'
import { NewDirectoryIcon, RefreshIcon, UploadIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Commands } from '../command.tsx'
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
      {value !== null && (
        <UploadTarget directory={value.path} add={add}>
          <button
            type="button"
            onClick={() => {
              action.value = { kind: 'mkdir', directory: value.path }
            }}
          >
            <Icon of={NewDirectoryIcon} />
            Create a directory
          </button>
        </UploadTarget>
      )}
      <Problem error={error.value} />
      {value === null ? (
        error.value === null && <Skeleton label="Loading the directory." rows={8} />
      ) : (
        <>
          <p class="freshness">
            <small>
              {formatCount(value)}, read {formatAge(now.value - value.at)} ago
            </small>
            <IconButton icon={RefreshIcon} label="Refresh" onClick={() => void load()} />
            <Commands
              texts={[
                `box files ls ${box.hostname}${path === HOME ? '' : ` ${quoteShell(value.path)}`}`,
                `box cp FILE ${box.hostname}:${quoteShell(joinPath(value.path, ''))}`,
              ]}
            />
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
            sort={sort.value}
            onSort={(name) => {
              sort.value = name
            }}
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

type UploadTargetProps = {
  directory: string
  add(selection: Selection): void
  /** Further buttons. */
  children: ComponentChildren
}

function UploadTarget({ directory, add, children }: UploadTargetProps) {
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
      <label class="button upload">
        <Icon of={UploadIcon} />
        Upload files
        <input
          type="file"
          class="visually-hidden"
          multiple
          onChange={({ currentTarget }) => {
            add(readChosen(directory, currentTarget.files))
            currentTarget.value = ''
          }}
        />
      </label>
      {children}
      <small>Or drop files and directories here, of at most 1 GiB each.</small>
      <Problem error={error.value} />
    </section>
  )
}
