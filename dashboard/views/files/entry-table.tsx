// The entries of a directory. Those that the API has no path for are shown without actions.

import type { Box } from '../../../shared/api/boxes.ts'
import type { FileEntry } from '../../../shared/api/files.ts'
import { startDownload } from '../../data/box-files.ts'
import { FILE_SORTS, type FileSort, formatFilesPath, getType, hasPath, joinPath } from '../../data/files.ts'
import { formatBytes } from '../../data/sizes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Icon } from '../../design/icon.tsx'
import { IconButton } from '../../design/icon-button.tsx'
import { DirectoryIcon, DownloadIcon, FileIcon, PencilIcon, TrashIcon } from '../../design/icons.ts'
import { SortHeader } from '../../design/sort-header.tsx'
import { Age } from '../age.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'
import type { FileAction } from './file-dialog.tsx'

type EntryProps = { box: Box; directory: string; onAction(action: FileAction): void }

type EntryTableProps = EntryProps & { entries: FileEntry[]; sort: FileSort; onSort(sort: FileSort): void }

export function EntryTable({ entries, sort, onSort, ...props }: EntryTableProps) {
  if (entries.length === 0) return null
  const header = (name: FileSort) => (
    <SortHeader
      label={FILE_SORTS[name]}
      direction={sort === name ? (name === 'name' ? 'ascending' : 'descending') : undefined}
      onSort={() => onSort(name)}
    />
  )
  return (
    <table class="entries">
      <thead>
        <tr>
          {header('name')}
          {header('size')}
          {header('changed')}
          <th scope="col">Mode</th>
          <th scope="col">Owner</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <EntryRow key={entry.nameBase64 ?? entry.name} entry={entry} {...props} />
        ))}
      </tbody>
    </table>
  )
}

function EntryRow({ box, directory, entry, onAction }: EntryProps & { entry: FileEntry }) {
  const { size, mode, owner, mtime, target, type } = entry
  const kind = getType(entry)
  return (
    <tr>
      <th scope="row">
        <Icon of={kind === 'directory' ? DirectoryIcon : FileIcon} />
        <EntryName boxName={box.hostname} directory={directory} entry={entry} />
        {type === 'symlink' && (
          <small>
            {' '}
            → {showHidden(target ?? '')}
            {kind === null && ' (not found)'}
          </small>
        )}
        {kind !== null && kind !== 'file' && kind !== 'directory' && <small> {kind}</small>}
      </th>
      <td data-label="Size" class="size">
        {type === 'file' ? formatBytes(size) : '–'}
      </td>
      <td data-label="Last change">{mtime === null ? 'unknown' : <Age at={mtime} />}</td>
      <td data-label="Mode">{mode}</td>
      <td data-label="Owner">{showHidden(owner)}</td>
      <td>
        {hasPath(entry) ? (
          <EntryActions box={box} directory={directory} entry={entry} onAction={onAction} />
        ) : (
          <small>The name is not one that a request can contain.</small>
        )}
      </td>
    </tr>
  )
}

function EntryName(props: { boxName: string; directory: string; entry: FileEntry }) {
  const { boxName, directory, entry } = props
  const name = showHidden(entry.name)
  const kind = getType(entry)
  if (!hasPath(entry)) return <span>{name}</span>
  if (kind === 'directory')
    return <a href={formatFilesPath(boxName, joinPath(directory, entry.name))}>{name}/</a>
  return kind === 'file' ? (
    <a href={formatFilesPath(boxName, directory, entry.name)}>{name}</a>
  ) : (
    <span>{name}</span>
  )
}

function EntryActions({ box, directory, entry, onAction }: EntryProps & { entry: FileEntry }) {
  const { error, run } = useAction()
  const path = joinPath(directory, entry.name)
  const name = showHidden(entry.name)
  const kind = getType(entry)
  return (
    <div class="actions">
      {(kind === 'file' || kind === 'directory') && (
        <IconButton
          icon={DownloadIcon}
          label={`Download ${name}`}
          onClick={() => void run(() => startDownload(box.id, path))}
        />
      )}
      <IconButton
        icon={PencilIcon}
        label={`Rename ${name}`}
        onClick={() => onAction({ kind: 'rename', directory, entry })}
      />
      <IconButton
        icon={TrashIcon}
        label={`Delete ${name}`}
        onClick={() => onAction({ kind: 'delete', directory, entry })}
      />
      <Problem error={error.value} />
    </div>
  )
}
