// Lists the files of a machine, to compare them before and after an operation.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const MAX_BYTES = 64 * 1024 * 1024

/** Logs, and what the services of a distribution write by themselves. */
const IGNORED = [
  /^\/var\/log\//,
  /^\/var\/lib\/systemd\/(timers|random-seed|linger$)/,
  /^(\/var)?\/tmp\/systemd-private-/,
  /^\/usr\/lib\/rc\/cache/,
  /^\/var\/lib\/urandom\//,
]

/**
 * One line per file: path, type, mode, owner, target of a symlink, and the hash of a file that differs from the one in the
 * lower layer. Sorted. Covers the root file system and /tmp, but no other mount.
 * @param rootDir the root directory of the machine @param lowerDir and @param upperDir the layers of its overlay
 */
export async function listFiles(rootDir: string, lowerDir: string, upperDir: string): Promise<string[]> {
  const [root, tmp, hashes] = await Promise.all([
    find([`${rootDir}/`, '-xdev', '-printf', '/%P\t%y %m %U:%G %l\n']),
    find([`${rootDir}/tmp/`, '-xdev', '-printf', '/tmp/%P\t%y %m %U:%G %l\n']),
    hashChangedFiles(lowerDir, upperDir),
  ])
  const lines = [...root, ...tmp].map((line) => {
    const path = line.slice(0, line.indexOf('\t'))
    return { path, text: `${line.replace('\t', ' ')}${hashes.get(path) ?? ''}` }
  })
  const kept = lines.filter(({ path }) => !IGNORED.some((pattern) => pattern.test(path)))
  return [...new Set(kept.map(({ text }) => text))].sort()
}

/** By path. */
async function hashChangedFiles(lowerDir: string, upperDir: string): Promise<Map<string, string>> {
  const sums = await find([`${upperDir}/`, '-type', 'f', '-exec', 'sha256sum', '{}', '+'])
  const hashes = new Map(sums.map((line) => [line.slice(66 + upperDir.length), line.slice(0, 16)] as const))
  const copied = [...hashes.keys()].map((path) => lowerDir + path).filter((path) => existsSync(path))
  const originals = copied.length === 0 ? [] : await find([...copied, '-exec', 'sha256sum', '{}', '+'])
  for (const line of originals) {
    const path = line.slice(66 + lowerDir.length)
    if (hashes.get(path) === line.slice(0, 16)) hashes.delete(path)
  }
  return hashes
}

/** Files may disappear while find runs: its exit status is not checked. */
async function find(args: string[]): Promise<string[]> {
  const { stdout } = await execute('find', args, { maxBuffer: MAX_BYTES }).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  )
  return stdout.split('\n').filter((line) => line !== '')
}
