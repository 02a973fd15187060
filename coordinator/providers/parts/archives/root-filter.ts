// Selects the entries of some directories from a tar stream.
import { PermanentProviderError } from '../../provider.ts'
import { type PaxEntry, PaxStream, readText } from './pax-stream.ts'

export class RootFilter {
  readonly #roots: readonly string[]
  readonly #stream = new PaxStream((entry) => this.#select(entry))

  /** @param roots the first components of the selected names */
  constructor(roots: readonly string[]) {
    this.#roots = roots
  }

  /**
   * Returns the selected part of the stream. Throws PermanentProviderError when a selected entry is a hard link to an entry that
   * is not selected.
   */
  push(data: Buffer): Buffer {
    return this.#stream.push(data)
  }

  #select({ block, extended, records }: PaxEntry): Buffer[] | null {
    const find = (key: string) => records.findLast((record) => record.key === key)?.value
    const name = find('path') ?? readName(block)
    if (!this.#isInRoots(name)) return null
    const isHardLink = block[156] === '1'.charCodeAt(0)
    if (isHardLink && !this.#isInRoots(find('linkpath') ?? readText(block, 157, 100)))
      throw new PermanentProviderError(
        `The file ${name.slice(0, 100).replace(/[^ -~]/g, '?')} is a hard link to a file of the agent, which copies of the box do not have. Wake the box, then try again.`,
      )
    return [extended, block]
  }

  #isInRoots(name: string): boolean {
    return this.#roots.includes(name.split('/', 1)[0] ?? '')
  }
}

/** Bytes that are not UTF-8 do not matter: only the first component of a name is compared. */
function readName(block: Buffer): string {
  const prefix = readText(block, 345, 155)
  const name = readText(block, 0, 100)
  return prefix === '' ? name : `${prefix}/${name}`
}
