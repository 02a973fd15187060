// The bytes of stdin that the server has not accepted yet. A new connection sends them again.
import { ATTACH_LIMITS } from '../../shared/attach-format.ts'
import { invalidDataError } from '../connection/server-data.ts'

export type StdinWindow = {
  /**
   * Waits until the window has room, then sends the bytes. Resolves with false when they were discarded after `close`.
   * @param bytes at most ATTACH_LIMITS.chunkBytes
   */
  append(bytes: Buffer): Promise<boolean>
  /** Discards the bytes before `offset`. @throws CliError for an offset that is not in the window */
  accept(offset: number): void
  /**
   * Continues at the offset of a new connection. Returns false, and discards all bytes, when the box has lost accepted bytes.
   * @throws CliError for an offset that is not in the window
   */
  resume(offset: number): boolean
  /** The bytes from the accepted offset on. */
  getUnaccepted(): readonly Buffer[]
  /** The command reads no more: discards all bytes. */
  close(): void
  readonly isClosed: boolean
}

/** @param send called synchronously with the bytes that `append` adds to the window */
export function createStdinWindow(send: (bytes: Buffer) => void): StdinWindow {
  let accepted = 0
  let end = 0
  let chunks: Buffer[] = []
  let isClosed = false
  let room = Promise.withResolvers<void>()

  const notifyRoom = () => {
    room.resolve()
    room = Promise.withResolvers<void>()
  }

  function accept(offset: number): void {
    if (isClosed) return
    if (offset < accepted || offset > end) throw invalidDataError('an offset of stdin that is out of range')
    let discarded = offset - accepted
    accepted = offset
    while (chunks[0] !== undefined && chunks[0].length <= discarded) {
      discarded -= chunks[0].length
      chunks.shift()
    }
    if (chunks[0] !== undefined && discarded > 0) chunks[0] = chunks[0].subarray(discarded)
    notifyRoom()
  }

  function close(): void {
    isClosed = true
    chunks = []
    notifyRoom()
  }

  return {
    async append(bytes) {
      while (!isClosed && end + bytes.length - accepted > ATTACH_LIMITS.stdinWindowBytes) await room.promise
      if (isClosed) return false
      chunks.push(bytes)
      end += bytes.length
      send(bytes)
      return true
    },
    resume(offset) {
      if (offset >= accepted || isClosed) {
        accept(offset)
        return true
      }
      close()
      return false
    },
    accept,
    getUnaccepted: () => chunks,
    close,
    get isClosed() {
      return isClosed
    },
  }
}
