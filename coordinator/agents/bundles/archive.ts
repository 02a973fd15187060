// Packs the files of an agent bundle into a .tar.gz archive. The same files result in the same bytes.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { chmod, mkdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { create as createTar } from 'tar'
import type { ProgramFile } from './program-files.ts'

export type ArchiveContent = {
  files: readonly ProgramFile[]
  executables: readonly string[]
  /** Large files, which are read as streams. They are executable. */
  binaries: readonly { name: string; path: string }[]
}

export type ArchiveDigest = { size: number; sha256: string }

/**
 * Identifies the content.
 * @returns 16 hex digits
 */
export async function hashContent({ files, executables, binaries }: ArchiveContent): Promise<string> {
  const hash = createHash('sha256').update(executables.join('\0'))
  for (const { name, bytes } of files) hash.update(`${name}\0${bytes.length}\0`).update(bytes)
  for (const { name, path } of binaries) {
    hash.update(`${name}\0${(await stat(path)).size}\0`)
    for await (const chunk of createReadStream(path)) hash.update(chunk)
  }
  return hash.digest('hex').slice(0, 16)
}

/**
 * Writes the archive and replaces `target`. gzip runs on Node's thread pool. Level 6: see docs/machine-service.md for the
 * measured sizes and times.
 */
export async function writeArchive(
  content: ArchiveContent,
  target: string,
  signal: AbortSignal,
): Promise<ArchiveDigest> {
  const stagingDir = `${target}.${process.pid}`
  const tempFile = `${stagingDir}.tmp`
  try {
    await rm(stagingDir, { recursive: true, force: true })
    await stageFiles(content, stagingDir)
    const names = [...content.files, ...content.binaries].map(({ name }) => name).sort()
    const archive = createTar(
      { cwd: stagingDir, portable: true, mtime: new Date(0), follow: true, noDirRecurse: true },
      names,
    )
    const digest = createDigest()
    await pipeline(
      archive as AsyncIterable<Buffer>,
      createGzip({ level: 6 }),
      digest.stream,
      createWriteStream(tempFile, { mode: 0o600 }),
      { signal },
    )
    await rename(tempFile, target)
    return digest.read()
  } finally {
    await rm(stagingDir, { recursive: true, force: true })
    await rm(tempFile, { force: true })
  }
}

async function stageFiles({ files, executables, binaries }: ArchiveContent, dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  for (const { name, bytes } of files) {
    const path = join(dir, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, bytes)
    // chmod ignores the umask of the coordinator.
    await chmod(path, executables.includes(name) ? 0o755 : 0o644)
  }
  for (const { name, path } of binaries) await symlink(path, join(dir, name))
}

/** Null when the file does not exist. */
export async function digestFile(path: string): Promise<ArchiveDigest | null> {
  const digest = createDigest()
  try {
    await pipeline(createReadStream(path), digest.stream.resume())
    return digest.read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function createDigest() {
  const hash = createHash('sha256')
  let size = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      hash.update(chunk)
      size += chunk.length
      callback(null, chunk)
    },
  })
  return { stream, read: (): ArchiveDigest => ({ size, sha256: hash.digest('hex') }) }
}
