// What attached commands and terminals of programs have in common: input, and output that waits for its reader.
import { type Attachment, type AttachmentOptions, attach } from '../attach/attachment.ts'
import { createDeferred } from '../attach/deferred.ts'
import type { OutputSink } from '../attach/sink-writer.ts'
import type { Context } from './context.ts'
import type { Exit } from './output.ts'

export type AttachedOptions<Item> = Omit<AttachmentOptions, 'sink' | 'outageMs' | 'onAttached'> & {
  /** @param push resolves when the reader of the output wants more: with false when the item was discarded */
  createSink(push: (item: Item) => Promise<boolean>): OutputSink
  /** The items after the output, such as what is missing at its end. */
  getLast?(): Item[]
}

export class Attached<Item> {
  /** Resolves when the client has attached for the first time. Rejects when it cannot. */
  readonly whenAttached: Promise<void>
  readonly #attachment: Attachment
  readonly #getLast: () => Item[]
  #item: { value: Item; onTaken(isRead: true): void } | null = null
  #onItem: () => void = () => undefined
  #isOver = false
  #hasReader = false
  #isDiscarding = false

  constructor({ outageMs }: Context, { createSink, getLast = () => [], ...options }: AttachedOptions<Item>) {
    this.#getLast = getLast
    const attached = createDeferred<void>()
    this.#attachment = attach({
      ...options,
      outageMs,
      sink: createSink((item) => this.#push(item)),
      onAttached: () => attached.resolve(),
    })
    this.whenAttached = attached.promise
    // A program may wait for it later, or never.
    this.whenAttached.catch(() => undefined)
    this.#attachment.result
      .then(() => attached.resolve(), attached.reject)
      .finally(() => {
        this.#isOver = true
        this.#onItem()
      })
  }

  /**
   * Writes standard input; text is sent as UTF-8. Resolves when more can be written: with false when no more is read. Lost
   * connections, and restarts of the coordinator are resumed: no byte is lost or repeated.
   */
  write(data: string | Uint8Array): Promise<boolean> {
    return this.#attachment.writeStdin(typeof data === 'string' ? new TextEncoder().encode(data) : data)
  }

  /**
   * Yields the output in the order in which it arrives, and waits for its reader, as the command does. Returns how it ended;
   * null: the client has detached. What is not read any more is discarded. It can be called once.
   */
  async *output(): AsyncGenerator<Item, Exit | null, undefined> {
    if (this.#hasReader) throw new TypeError('The output is already read.')
    this.#hasReader = true
    try {
      for (;;) {
        while (this.#item === null && !this.#isOver) await this.#waitForItem()
        if (this.#item === null) break
        yield this.#item.value
        this.#take()
      }
      const exit = await this.#attachment.result
      yield* this.#getLast()
      return exit
    } finally {
      this.#discard()
    }
  }

  /** Resolves when the command has exited, and the output was read; output that nothing reads is discarded. null: the client has detached. */
  wait(): Promise<Exit | null> {
    if (!this.#hasReader) this.#discard()
    return this.#attachment.result
  }

  protected get attachment(): Attachment {
    return this.#attachment
  }

  #push(value: Item): Promise<boolean> {
    if (this.#isDiscarding) return Promise.resolve(false)
    return new Promise((onTaken) => {
      this.#item = { value, onTaken }
      this.#onItem()
    })
  }

  #take(): void {
    const item = this.#item
    this.#item = null
    item?.onTaken(true)
  }

  #discard(): void {
    this.#isDiscarding = true
    this.#take()
  }

  #waitForItem(): Promise<void> {
    return new Promise((resolve) => {
      this.#onItem = resolve
    })
  }
}
