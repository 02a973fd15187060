// Counts the open terminals, attached commands and followed prompts, by box and user: the sessions of the team status.

export type AttachmentCounts = {
  /** @param userId null: the key has no user. Returns a function that must be called once, when the connection is closed. */
  add(boxId: string, userId: string | null): () => void
  countByUser(boxId: string): ReadonlyMap<string | null, number>
}

const NONE: ReadonlyMap<string | null, number> = new Map()

/** A box without connections uses no memory. */
export function createAttachmentCounts(): AttachmentCounts {
  const byBox = new Map<string, Map<string | null, number>>()

  function change(boxId: string, userId: string | null, difference: 1 | -1): void {
    const byUser = byBox.get(boxId) ?? new Map<string | null, number>()
    const count = (byUser.get(userId) ?? 0) + difference
    if (count > 0) byUser.set(userId, count)
    else byUser.delete(userId)
    if (byUser.size > 0) byBox.set(boxId, byUser)
    else byBox.delete(boxId)
  }

  return {
    add(boxId, userId) {
      change(boxId, userId, 1)
      return () => change(boxId, userId, -1)
    },
    countByUser: (boxId) => byBox.get(boxId) ?? NONE,
  }
}
