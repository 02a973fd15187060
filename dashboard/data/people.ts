// Who did something, in words instead of ids.

export type PersonViewer = {
  /** The signed-in user. */
  userId: string | null
  /** The names of the members, by their ids. */
  names: ReadonlyMap<string, string>
}

export const formatUser = (userId: string | null, { userId: own, names }: PersonViewer): string =>
  userId === null ? 'no user' : userId === own ? 'you' : (names.get(userId) ?? describeUnknown(names))

/** A contractor does not see the members. */
const describeUnknown = (names: PersonViewer['names']): string =>
  names.size === 0 ? 'another person' : 'a former member'

/** The actor of a change of a box: `user:` or `key:` and an id, or a part of the coordinator. */
export function formatActor(actor: string, viewer: PersonViewer): string {
  const [kind, id] = actor.split(':', 2)
  if (id === undefined) return actor === 'system' ? 'the coordinator' : actor
  return kind === 'user' ? formatUser(id, viewer) : 'a key without a user'
}
