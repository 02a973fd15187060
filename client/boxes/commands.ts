// The history of the commands of a box.
import type { Command, CommandsListQuery } from '../generated/types.ts'
import type { CallOptions } from '../http/calls.ts'
import type { Context } from './context.ts'
import { type Filter, readBefore } from './pages.ts'
import { requireField } from './require-field.ts'

export class Commands {
  readonly #context: Context
  readonly #boxId: string

  constructor(context: Context, boxId: string) {
    this.#context = context
    this.#boxId = boxId
  }

  /** The commands, newest first, also of a box that is suspended. */
  list(
    filter: Filter<CommandsListQuery> = {},
    options?: CallOptions,
  ): AsyncGenerator<Command, void, undefined> {
    const { commands } = this.#context.routes
    return readBefore(
      (page: { limit: number; before?: string }) =>
        commands.list(this.#boxId, { ...filter, ...page }, options),
      (page) => requireField(page, 'commands'),
    )
  }
}
