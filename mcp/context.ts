// What the tools share: the client, and how far the flags narrow what the key allows.
import type { Box } from '../client/boxes/box.ts'
import type { Boxwood } from '../client/boxwood.ts'
import { ToolError } from './errors.ts'

export type McpOptions = {
  /** Only tools that change nothing. */
  isReadOnly?: boolean
  /** The names or ids of the only boxes that the tools use. Default: those of the key. */
  boxes?: readonly string[]
  /** Default: true. */
  canCreate?: boolean
  /** Default: false. */
  canDelete?: boolean
  /** Whether ports may be shared beyond the members of the workspace. Default: false. */
  canSharePublicly?: boolean
  /** How long a call waits at most, in milliseconds. Default: 45 s, because the time limit of hosts is 60 s. */
  maxWaitMs?: number
}

/** Of one call of a tool. */
export type Call = {
  /** Aborted when the client has cancelled the call, or has disconnected. */
  signal: AbortSignal
  /** Whether the client accepts a task as the answer. */
  acceptsTasks: boolean
  /** Says to the client how far the call is. undefined: it has not asked for that. */
  reportProgress: ((message: string) => void) | undefined
}

export class Context {
  readonly boxwood: Boxwood
  readonly options: McpOptions
  readonly #calls = new Set<Promise<unknown>>()

  constructor(boxwood: Boxwood, options: McpOptions) {
    this.boxwood = boxwood
    this.options = options
  }

  get maxWaitMs(): number {
    return this.options.maxWaitMs ?? 45_000
  }

  /** @param seconds undefined: as long as possible */
  getWaitMs(seconds: number | undefined): number {
    return seconds === undefined ? this.maxWaitMs : Math.min(seconds * 1000, this.maxWaitMs)
  }

  /** @throws ToolError for a box that the flags exclude; BoxwoodError */
  async findBox(name: string, { signal }: Pick<Call, 'signal'>): Promise<Box> {
    const { boxes } = this.options
    const box = await this.boxwood.boxes.get(name, { signal })
    if (boxes === undefined || boxes.includes(box.name) || boxes.includes(box.id)) return box
    throw new ToolError(
      `This server may not use the box ${box.name}.`,
      `Its user has limited it to ${boxes.join(', ')}.`,
    )
  }

  /** A call that settle() waits for. */
  track<T>(call: Promise<T>): Promise<T> {
    const settled = call.then(
      () => undefined,
      () => undefined,
    )
    this.#calls.add(settled)
    void settled.then(() => this.#calls.delete(settled))
    return call
  }

  /** Resolves when no call runs, also after a disconnect: a call may have to terminate what it has started. */
  async settle(): Promise<void> {
    while (this.#calls.size > 0) await Promise.all(this.#calls)
  }
}
