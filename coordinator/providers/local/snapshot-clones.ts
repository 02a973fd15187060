// Stores a snapshot from a clone of the files, where files can be cloned. New boxes get their files from the clone until then.
import type { Archives } from '../parts/archives/archives.ts'
import type { BoxFiles } from '../parts/archives/tar.ts'
import { BoxQueue } from '../parts/box-queue.ts'
import type { ArchiveInfo, ArchiveKey } from '../provider.ts'
import type { ReadMachine } from './capture-machine.ts'
import { findClone, type KeptClone, keepClone, removeMachineCopy } from './machine-copies.ts'
import { ARCHIVE_ROOTS } from './restore-machine.ts'

export type SnapshotClonesOptions = {
  boxesDir: string
  archives: Archives
  /** Reads the files that a new machine gets. */
  readMachine<Info>(boxId: string, signal: AbortSignal | undefined, read: ReadMachine<Info>): Promise<Info>
}

export class SnapshotClones {
  readonly #boxesDir: string
  readonly #archives: Archives
  readonly #readMachine: SnapshotClonesOptions['readMachine']
  /** A clone is not removed while the files of a new box are copied from it. */
  readonly #queue = new BoxQueue()

  constructor({ boxesDir, archives, readMachine }: SnapshotClonesOptions) {
    this.#boxesDir = boxesDir
    this.#archives = archives
    this.#readMachine = readMachine
  }

  /**
   * Stores the files of the machine, or of the clone of an earlier call.
   * @param onCopied called when the clone exists. Not called where the files cannot be cloned.
   */
  async capture(
    boxId: string,
    key: ArchiveKey,
    signal: AbortSignal | undefined,
    onCopied: (info: ArchiveInfo) => Promise<void>,
  ): Promise<ArchiveInfo> {
    const existing = this.#archives.find(key)
    if (existing !== null) {
      // A coordinator was killed before it had removed the clone, or before the result was recorded.
      await this.remove(key)
      return existing
    }
    const stored = this.#find(key) === null ? await this.#cloneOrStore(boxId, key, signal) : null
    if (stored !== null) return stored
    const clone = this.#find(key)
    if (clone === null) throw new Error('The clone of the box has been removed.')
    await onCopied(clone.info)
    const options = { pausedMs: clone.info.pausedMs, signal }
    const info = await this.#archives.capture(toFiles(clone), key, options)
    await this.remove(key)
    return info
  }

  /** Writes the files of the snapshot into existing directories: from the clone, or from the archive. */
  async restore(key: ArchiveKey, target: BoxFiles, signal: AbortSignal | undefined): Promise<void> {
    const isCopied =
      this.#find(key) !== null &&
      (await this.#queue.run(key.archiveId, async () => {
        const clone = this.#find(key)
        if (clone !== null) await this.#archives.copyTree(toFiles(clone), target, { signal })
        return clone !== null
      }))
    if (!isCopied) await this.#archives.restore(key, target, signal)
  }

  /** Removes the clone or copy of the machine. */
  remove(key: ArchiveKey): Promise<void> {
    return this.#queue.run(key.archiveId, () => removeMachineCopy(this.#boxesDir, key))
  }

  waitUntilIdle(): Promise<void> {
    return this.#queue.waitUntilIdle()
  }

  #find(key: ArchiveKey): KeptClone | null {
    return findClone(this.#boxesDir, key)
  }

  /** null: the files are in the clone. Otherwise the archive has been stored. */
  #cloneOrStore(
    boxId: string,
    key: ArchiveKey,
    signal: AbortSignal | undefined,
  ): Promise<ArchiveInfo | null> {
    return this.#readMachine(boxId, signal, async (files, options, clone) => {
      if (clone === null) return await this.#archives.capture(files, key, options)
      await keepClone(this.#boxesDir, key, clone, await this.#archives.measure(files, signal))
      return null
    })
  }
}

const toFiles = ({ dir, uid }: KeptClone): BoxFiles => ({ dir, uid, roots: ARCHIVE_ROOTS.files })
