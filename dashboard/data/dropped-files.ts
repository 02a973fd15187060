// The files that were dropped on the page or chosen, with those in directories.
import { joinPath } from './files.ts'
import type { NewUpload } from './uploads.ts'

export type Selection = { files: NewUpload<File>[]; directories: string[] }

const entryOf = (path: string, file: File): NewUpload<File> => ({ path, size: file.size, content: file })

/** @param target the directory on the box */
export function readChosen(target: string, list: FileList | null): Selection {
  const files = [...(list ?? [])].map((file) => entryOf(joinPath(target, file.name), file))
  return { files, directories: [] }
}

/** Reads directories recursively. Those without files are left out. */
export async function readDropped(target: string, transfer: DataTransfer): Promise<Selection> {
  // The items are not available any more after the event.
  const items = [...transfer.items].map((item) => ({
    entry: item.webkitGetAsEntry(),
    file: item.getAsFile(),
  }))
  const selection: Selection = { files: [], directories: [] }
  for (const { entry, file } of items) {
    if (entry !== null) await addEntry(selection, target, entry)
    else if (file !== null) selection.files.push(entryOf(joinPath(target, file.name), file))
  }
  return selection
}

async function addEntry(selection: Selection, target: string, entry: FileSystemEntry): Promise<void> {
  const path = joinPath(target, entry.name)
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    )
    selection.files.push(entryOf(path, file))
    return
  }
  const children = await readEntries(entry as FileSystemDirectoryEntry)
  if (children.some(({ isFile }) => isFile)) selection.directories.push(path)
  for (const child of children) await addEntry(selection, path, child)
}

/** A browser returns the entries in parts, the last of which is empty. */
async function readEntries(directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = directory.createReader()
  const all: FileSystemEntry[] = []
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (part.length === 0) return all
    all.push(...part)
  }
}
