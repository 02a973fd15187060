// A directory of 1 GB with files of many sizes, of which 1 % changes at a time.
import { randomBytes, randomInt } from 'node:crypto'
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'

const KB = 1000
const MB = 1000 * KB

/** `changed`: how many of the files are rewritten by each change. */
const GROUPS = [
  { name: 'small', files: 20_000, bytes: 10 * KB, changed: 200 },
  { name: 'medium', files: 500, bytes: MB, changed: 5 },
] as const
const LARGE_FILES = 3
const LARGE_BYTES = 100 * MB
/** Each change overwrites a range of this length in each large file. */
const LARGE_CHANGE_BYTES = MB

/** Half of the files are incompressible, half shrink to about a half. */
const createContent = (bytes: number, index: number): Buffer =>
  index % 2 === 0 ? randomBytes(bytes) : Buffer.from(randomBytes(bytes / 2).toString('hex'), 'latin1')

export function createChangingTree(root: string) {
  /** 100 files per directory. */
  const pathOf = (group: string, index: number) =>
    join(root, group, `dir-${Math.floor(index / 100)}`, `file-${index}`)

  function write(group: string, index: number, bytes: number): void {
    const path = pathOf(group, index)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, createContent(bytes, index))
  }

  for (const { name, files, bytes } of GROUPS) for (let i = 0; i < files; i++) write(name, i, bytes)
  for (let i = 0; i < LARGE_FILES; i++) write('large', i, LARGE_BYTES)

  return {
    change(): void {
      for (const { name, files, bytes, changed } of GROUPS)
        for (let i = 0; i < changed; i++) write(name, randomInt(files), bytes)
      for (let i = 0; i < LARGE_FILES; i++) {
        const file = openSync(pathOf('large', i), 'r+')
        const offset = randomInt(LARGE_BYTES - LARGE_CHANGE_BYTES)
        writeSync(file, createContent(LARGE_CHANGE_BYTES, i), 0, LARGE_CHANGE_BYTES, offset)
        closeSync(file)
      }
    },
  }
}
