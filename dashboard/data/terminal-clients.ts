// The ids of the clients of terminals. A page that is loaded again continues as the same client, which may still fetch the exit.

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

const getKey = (boxId: string, session: string) => `boxwood.terminal.${boxId}.${session}`

/** Removes the id from the store: a copy of the tab, which has a copy of the store, becomes a client of its own. */
export function takeClientId(store: Store | null, boxId: string, session: string): string | null {
  const key = getKey(boxId, session)
  const id = store?.getItem(key) ?? null
  store?.removeItem(key)
  return id
}

/** Call when the page is left. */
export function storeClientId(store: Store | null, boxId: string, session: string, id: string): void {
  store?.setItem(getKey(boxId, session), id)
}
