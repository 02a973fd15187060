// Edits of text files. A file that a program has changed meanwhile is not replaced without a question.
import { createError } from '../../client/http/errors.ts'
import type { FileEntry } from '../../shared/api/files.ts'
import type { Files } from '../api/files.ts'
import { applyLineEnd, findLineEnd, type LineEnd, readContent } from './file-content.ts'

/** `inlineFileBytes` of shared/limits.ts: the largest content of a request. */
export const MAX_TEXT_BYTES = 1024 * 1024

/** What the text was read from. */
export type Origin = { path: string; lineEnd: LineEnd; mtime: string | null; size: number }

/** A text that is not saved. */
export type Draft = { origin: Origin; text: string }

type EditFiles = Pick<Files, 'find' | 'read' | 'writeText'>

/**
 * Reads a text to edit, with the line end of text areas. Rejects with BoxwoodError, also for a text that a text area would change.
 * @param path the real path
 */
export async function openText(files: EditFiles, path: string): Promise<Draft> {
  // Before the content: a change between both requests is then noticed when the text is saved.
  const entry = await files.find(path)
  const content = readContent(await files.read(path))
  if (content.kind !== 'text' || entry === null)
    throw createError({ code: 'not_text', message: 'The file is not a text.', status: 0 })
  const lineEnd = findLineEnd(content.text)
  if (lineEnd === null)
    throw createError({
      code: 'mixed_line_ends',
      message:
        'The lines of the file end in different ways, which this editor would change. Edit the file in a terminal.',
      status: 0,
    })
  const { mtime, size } = entry
  return { origin: { path, lineEnd, mtime, size }, text: content.text.replaceAll('\r\n', '\n') }
}

export type SaveResult =
  | { isSaved: true; origin: Origin }
  /** Another program has changed the file. Null: it has removed the file. */
  | { isSaved: false; current: FileEntry | null }

/** Writes the text, unless the file has changed since it was read. Rejects with BoxwoodError. */
export async function saveText(
  files: EditFiles,
  { origin, text }: Draft,
  { overwrite }: { overwrite: boolean },
): Promise<SaveResult> {
  const { path, lineEnd, mtime, size } = origin
  const content = applyLineEnd(text, lineEnd)
  if (new TextEncoder().encode(content).length > MAX_TEXT_BYTES)
    throw createError({
      code: 'payload_too_large',
      message: 'The text is longer than 1 MiB. Upload it as a file.',
      status: 0,
    })
  if (!overwrite) {
    const current = await files.find(path)
    if (current === null || current.mtime !== mtime || current.size !== size)
      return { isSaved: false, current }
  }
  await files.writeText(path, content)
  const written = await files.find(path)
  return {
    isSaved: true,
    origin: { ...origin, mtime: written?.mtime ?? null, size: written?.size ?? 0 },
  }
}
