// The dialogs that create, rename and delete entries of a directory.
import type { Box } from '../../../shared/api/boxes.ts'
import type { FileEntry } from '../../../shared/api/files.ts'
import { getBoxFiles } from '../../data/box-files.ts'
import { joinPath, resolveTarget } from '../../data/files.ts'
import { quoteShell } from '../../data/quote-shell.ts'
import { showHidden } from '../../data/visible-text.ts'
import { FormDialog } from '../form-dialog.tsx'

export type FileAction =
  | { kind: 'mkdir'; directory: string }
  | { kind: 'rename' | 'delete'; directory: string; entry: FileEntry }

export type FileDialogProps = {
  box: Box
  action: FileAction
  /** Called after the change, before the dialog closes. */
  onDone(): Promise<void>
  onClose(): void
}

const REPLACE = 'replace'

export function FileDialog({ box, action, onDone, onClose }: FileDialogProps) {
  const { files } = getBoxFiles(box.id)
  const { directory } = action
  if (action.kind === 'mkdir')
    return (
      <FormDialog
        title="Create a directory"
        fields={[{ name: 'name', label: 'Name' }]}
        submitLabel="Create"
        formatCommand={({ name = '' }) =>
          `box files mkdir ${box.hostname} ${quoteShell(resolveTarget(directory, name))}`
        }
        accepts={({ name = '' }) => name !== ''}
        onClose={onClose}
        submit={async ({ name = '' }) => {
          await files.makeDirectory(resolveTarget(directory, name))
          await onDone()
        }}
      />
    )
  const { entry } = action
  const path = joinPath(directory, entry.name)
  const shown = showHidden(entry.name)
  if (action.kind === 'rename')
    return (
      <FormDialog
        title={`Rename or move ${shown}`}
        fields={[
          { name: 'to', label: 'New name, or path', value: entry.name },
          {
            name: 'existing',
            label: 'When the new path exists',
            options: [
              { value: '', label: 'Keep it, and do nothing' },
              { value: REPLACE, label: 'Replace it' },
            ],
          },
        ]}
        submitLabel="Rename"
        formatCommand={({ to = '', existing }) =>
          `box files mv ${box.hostname}${existing === REPLACE ? ' -f' : ''} ${quoteShell(path)} ${quoteShell(resolveTarget(directory, to))}`
        }
        accepts={({ to = '' }) => to !== '' && resolveTarget(directory, to) !== path}
        onClose={onClose}
        submit={async ({ to = '', existing }) => {
          await files.move(path, resolveTarget(directory, to), existing === REPLACE)
          await onDone()
        }}
      />
    )
  const isDirectory = entry.type === 'directory'
  return (
    <FormDialog
      title={`Delete ${shown}`}
      fields={
        isDirectory ? [{ name: 'name', label: `Type ${shown} to delete the directory and its content` }] : []
      }
      submitLabel="Delete"
      formatCommand={() => `box files rm ${box.hostname}${isDirectory ? ' -r' : ''} ${quoteShell(path)}`}
      accepts={({ name }) => !isDirectory || name === entry.name || name === shown}
      onClose={onClose}
      submit={async () => {
        await files.remove(path, isDirectory)
        await onDone()
      }}
    >
      {!isDirectory && <p>{showHidden(path)} is deleted for good.</p>}
    </FormDialog>
  )
}
