// The boxes of a workspace.
import type { BoxesListQuery, CreateBox } from '../generated/types.ts'
import { type CallOptions, withTimeLimit } from '../http/calls.ts'
import { createError } from '../http/errors.ts'
import { Box, type BoxData, TemporaryBox, type WaitOptions } from './box.ts'
import type { Context } from './context.ts'
import { readBefore } from './pages.ts'
import { requireField } from './require-field.ts'

export type ListOptions = CallOptions & {
  /** Only boxes with all of these labels: `key` or `key=value`. */
  labels?: readonly string[]
  /** Deleted boxes too, as long as the coordinator keeps their records. */
  includeDeleted?: boolean
}

export class Boxes {
  readonly #context: Context

  constructor(context: Context) {
    this.#context = context
  }

  /** Creates a box. Resolves when it runs. */
  create(request: CreateBox = {}, options: WaitOptions = {}): Promise<Box> {
    return withTimeLimit(options, async (call) =>
      new Box(this.#context, await this.#create(request, call)).waitUntilRunning(call),
    )
  }

  /** Creates a box that is deleted at the end of the block that has it with `await using`. Resolves when it runs. */
  temporary(request: CreateBox = {}, options: WaitOptions = {}): Promise<TemporaryBox> {
    return withTimeLimit(options, async (call) => {
      const box = new TemporaryBox(this.#context, await this.#create(request, call))
      try {
        return await box.waitUntilRunning(call)
      } catch (error) {
        await box.delete().catch(() => undefined)
        throw error
      }
    })
  }

  async #create(request: CreateBox, options: CallOptions): Promise<BoxData> {
    return requireField(await this.#context.routes.boxes.create(request, options), 'box') as BoxData
  }

  /** A box by its name, its id, or a unique start of its id. */
  async get(nameOrId: string, options?: CallOptions): Promise<Box> {
    const page = await this.#context.routes.boxes.list({ box: nameOrId, live: true }, options)
    const boxes = requireField(page, 'boxes')
    // An older coordinator may not know the filter.
    const [box, other] = boxes.filter(({ id }) => id.startsWith(nameOrId))
    const exact = boxes.find(({ id, hostname }) => id === nameOrId || hostname === nameOrId)
    const found = exact ?? (other === undefined ? box : undefined)
    if (found !== undefined) return new Box(this.#context, found as BoxData)
    throw createError({
      code: 'no_such_box',
      message:
        other === undefined
          ? `There is no box ${nameOrId}.`
          : `Several boxes have ids that start with ${nameOrId}.`,
      status: 404,
    })
  }

  /** The boxes, newest first. */
  list({ labels, includeDeleted, ...options }: ListOptions = {}): AsyncGenerator<Box, void, undefined> {
    const filter: BoxesListQuery = {
      live: includeDeleted !== true,
      ...(labels !== undefined && { label: [...labels] }),
    }
    return readBefore(
      (page: { limit: number; before?: string }) =>
        this.#context.routes.boxes.list({ ...filter, ...page }, options),
      (page) => requireField(page, 'boxes').map((box) => new Box(this.#context, box as BoxData)),
    )
  }
}
