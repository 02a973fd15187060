// Earlier items of the range, which are loaded when the user asks for them.

import { useSignal } from '@preact/signals'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import type { Range } from '../../data/timeline/range.ts'

export type Earlier<Pages> = {
  /** Null: none was loaded for the range. */
  pages: Pages | null
  error: BoxwoodError | null
  load(): Promise<void>
}

/**
 * A live range that advances keeps what was loaded.
 * @param load continues the pages that are loaded
 */
export function useEarlier<Pages>(
  boxId: string,
  range: Range,
  load: (previous: Pages | null) => Promise<Pages>,
): Earlier<Pages> {
  const state = useSignal<{ boxId: string; range: Range; pages: Pages } | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const { value } = state
  const covers =
    value !== null &&
    value.boxId === boxId &&
    range.from >= value.range.from &&
    range.from < value.range.to &&
    range.to >= value.range.to
  const pages = covers ? value.pages : null
  return {
    pages,
    error: error.value,
    async load() {
      try {
        state.value = { boxId, range: covers ? value.range : range, pages: await load(pages) }
        error.value = null
      } catch (reason) {
        error.value = toBoxwoodError(reason)
      }
    },
  }
}
