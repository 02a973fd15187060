// Reads the entries of a backup, and verifies a whole backup before anything of it is used.

import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { Parser, type ReadEntry } from 'tar'
import { parseJson } from '../../../shared/parse-json.ts'
import { StartError } from '../../base/start-error.ts'
import {
  type BackupDescription,
  backupDescription,
  CHECKSUMS_ENTRY,
  DATABASE_ENTRY,
  DESCRIPTION_ENTRY,
  FORMAT_VERSION,
  isDataFile,
  parseChecksums,
} from './format.ts'

const MAX_DESCRIPTION_BYTES = 1024 * 1024

export type VerifiedBackup = { description: BackupDescription; checksums: ReadonlyMap<string, string> }

/** A backup. The file is open, because the process may lose the permission to open it. */
export type BackupFile = { path: string; handle: FileHandle }

/** @throws StartError when the file cannot be read */
export async function openBackup(path: string): Promise<BackupFile> {
  try {
    return { path, handle: await open(path) }
  } catch (error) {
    throw describeReadError(path, error)
  }
}

/** Reads the whole file. Throws StartError when it is not a complete, undamaged backup that this version can restore. */
export async function verifyBackup(backup: BackupFile, signal: AbortSignal): Promise<VerifiedBackup> {
  const { path: file } = backup
  const found = new Map<string, string>()
  let descriptionText = ''
  let checksumsText: string | null = null
  await readEntries(backup, signal, async (name, entry) => {
    if (checksumsText !== null) throw damaged(file, `${name} follows ${CHECKSUMS_ENTRY}`)
    if (found.has(name)) throw damaged(file, `it has two entries ${name}`)
    if (found.size === 0 && name !== DESCRIPTION_ENTRY) throw notABackup(file)
    if (name === CHECKSUMS_ENTRY) checksumsText = await readText(entry, Number.POSITIVE_INFINITY)
    else if (name === DESCRIPTION_ENTRY) {
      descriptionText = await readText(entry, MAX_DESCRIPTION_BYTES)
      found.set(name, createHash('sha256').update(descriptionText).digest('hex'))
    } else if (isDataFile(name)) found.set(name, await hashEntry(entry))
    else throw damaged(file, `it has an unknown entry ${JSON.stringify(name)}`)
  })
  if (found.size === 0) throw notABackup(file)
  if (checksumsText === null)
    throw new StartError(
      `The backup ${file} is not complete. Its writing was interrupted; use another backup.`,
    )
  const description = parseDescription(file, descriptionText)
  compareChecksums(file, found, parseChecksums(checksumsText))
  if (!found.has(DATABASE_ENTRY)) throw damaged(file, `${DATABASE_ENTRY} is missing`)
  return { description, checksums: found }
}

function parseDescription(file: string, text: string): BackupDescription {
  const json = parseJson(text)
  const format = backupDescription.pick({ format: true, version: true }).safeParse(json)
  if (format.success && format.data.format > FORMAT_VERSION)
    throw new StartError(
      `The backup ${file} was written by Boxwood ${format.data.version}, and this version cannot read it. Install that version or a newer one.`,
    )
  const description = backupDescription.safeParse(json)
  if (!description.success) throw damaged(file, `${DESCRIPTION_ENTRY} is not valid`)
  return description.data
}

function compareChecksums(
  file: string,
  found: ReadonlyMap<string, string>,
  expected: ReadonlyMap<string, string> | null,
): void {
  if (expected === null) throw damaged(file, `${CHECKSUMS_ENTRY} is not valid`)
  for (const [name, sha256] of expected)
    if (found.get(name) !== sha256)
      throw damaged(file, `${name} ${found.has(name) ? 'differs from its checksum' : 'is missing'}`)
  for (const name of found.keys()) if (!expected.has(name)) throw damaged(file, `${name} has no checksum`)
}

/** Calls `onEntry` for one entry after the other. `onEntry` must read the entry, or throw. */
export async function readEntries(
  { path: file, handle }: BackupFile,
  signal: AbortSignal,
  onEntry: (name: string, entry: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const stopping = new AbortController()
  let failure: unknown
  let hasEntries = false
  let last = Promise.resolve()
  const parser = new Parser({
    strict: true,
    onReadEntry(entry: ReadEntry) {
      hasEntries = true
      const work = async () => {
        // The caller removes what the entries before have written.
        if (failure !== undefined) return
        if (entry.type !== 'File' && entry.type !== 'OldFile')
          throw damaged(file, `${JSON.stringify(entry.path)} is not a file`)
        await onEntry(entry.path, entry)
      }
      last = last.then(work).catch((error: unknown) => {
        failure ??= error
        stopping.abort(error)
      })
    },
  })
  try {
    await pipeline(
      handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 1024 * 1024 }),
      parser as unknown as NodeJS.WritableStream,
      {
        signal: AbortSignal.any([signal, stopping.signal]),
      },
    )
  } catch (error) {
    signal.throwIfAborted()
    failure ??= isTarError(error) ? describeTarError(file, hasEntries) : error
  }
  if (failure === undefined) await last
  if (failure !== undefined) throw describeReadError(file, failure)
}

const isTarError = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('TAR_')

const describeTarError = (file: string, hasEntries: boolean): StartError =>
  hasEntries ? damaged(file, 'it is truncated, or its tar structure is not valid') : notABackup(file)

function describeReadError(file: string, error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return error
  return new StartError(`Cannot read ${file}: ${error.message}.`, { cause: error })
}

async function hashEntry(entry: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const block of entry) hash.update(block)
  return hash.digest('hex')
}

async function readText(entry: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const blocks: Buffer[] = []
  let count = 0
  for await (const block of entry) {
    count += block.length
    if (count > maxBytes) break
    blocks.push(block)
  }
  return Buffer.concat(blocks).toString('utf8')
}

const damaged = (file: string, problem: string): StartError =>
  new StartError(`The backup ${file} is damaged: ${problem}. Nothing was written. Use another backup.`)

const notABackup = (file: string): StartError =>
  new StartError(`${file} is not a backup of Boxwood, or it is damaged. Nothing was written.`)
