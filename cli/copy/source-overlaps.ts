// Finds sources whose copies would replace each other, before anything is written.
import { lstat, readdir } from 'node:fs/promises'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { getRealPath, nullIfMissing } from './local-files.ts'
import { decodePath, toFsPath } from './path-bytes.ts'
import { type BoxPath, getDownloadName, getLocalName, isContentsPath, type LocalPath } from './paths.ts'

export type OverlapCheck = {
  /** @throws CliError for a source that overlaps an earlier one */
  addLocal(source: LocalPath): Promise<void>
  addBox(source: BoxPath, hostname: string): Promise<void>
}

export function createOverlapCheck(): OverlapCheck {
  /** Name in the destination → real path on this machine; null: on a box. */
  const named = new Map<string, string | null>()
  /** Real paths of directories whose contents are copied. */
  const contents: string[] = []
  const refuse = (text: string, entry: string): never => {
    const what = entry === '' ? ':' : ` has ${sanitize(entry)}:`
    throw new CliError(
      EXIT.failed,
      `${sanitize(text)}${what} another source has the same name. Copy it separately.`,
    )
  }
  const addNamed = async (text: string, name: string, path: string | null) => {
    if (named.has(name)) refuse(text, '')
    for (const directory of contents) {
      const common = await findCommon(`${directory}/${name}`, path)
      if (common !== null) refuse(text, common)
    }
    named.set(name, path)
  }
  const addContents = async (text: string, directory: string) => {
    for (const other of contents) {
      const common = await findCommon(other, directory)
      if (common !== null) refuse(text, common)
    }
    for (const [name, path] of named) {
      const common = await findCommon(path, `${directory}/${name}`)
      if (common !== null) refuse(text, joinNames(name, common))
    }
    contents.push(directory)
  }
  return {
    async addLocal({ path, text }) {
      const realPath = await getRealPath(path)
      await (isContentsPath(path)
        ? addContents(text, realPath)
        : addNamed(text, getLocalName(path), realPath))
    },
    async addBox({ path, text }, hostname) {
      if (isContentsPath(path))
        throw new CliError(
          EXIT.failed,
          `${sanitize(text)}: the contents of a directory on a box must be the only source. Copy them separately.`,
        )
      await addNamed(text, getDownloadName(path, hostname), null)
    },
  }
}

/**
 * The path below both of an entry that is not a directory in both; '' is the entry itself, null is none.
 * @param first, second null: on a box, so that the type is unknown
 */
async function findCommon(first: string | null, second: string | null): Promise<string | null> {
  const [firstStats, secondStats] = await Promise.all([first, second].map(lstatIfKnown))
  if (firstStats === null || secondStats === null) return null
  if (!firstStats?.isDirectory() || !secondStats?.isDirectory() || first === null || second === null)
    return ''
  for (const bytes of await readdir(toFsPath(second), { encoding: 'buffer' })) {
    const name = decodePath(bytes)
    const common = await findCommon(`${first}/${name}`, `${second}/${name}`)
    if (common !== null) return joinNames(name, common)
  }
  return null
}

/** undefined: not known. */
const lstatIfKnown = async (path: string | null) =>
  path === null ? undefined : nullIfMissing(lstat(toFsPath(path)))

const joinNames = (name: string, rest: string): string => (rest === '' ? name : `${name}/${rest}`)
