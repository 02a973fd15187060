// The names of users in the command history, whose records have only user ids.
import type { Account } from '../../shared/api/account.ts'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'

export type UserNames = {
  /** The name; the start of the id for a user without a known name; the kind of an actor that is not a user. */
  getName(record: CommandRecord): string
  /** Call for each record that is read: a record of this API key connects the user's id to the name. */
  learn(records: readonly CommandRecord[]): void
}

/** The start of a user id, which is enough to distinguish users. */
const ID_LENGTH = 12

/** @param account of this API key: its user is the only user whose name the API has */
export function createUserNames({ user, key }: Pick<Account, 'user' | 'key'>): UserNames {
  const names = new Map<string, string>()
  const ownName = user === null ? null : user.name || user.email
  return {
    learn(records) {
      if (ownName === null) return
      for (const { actor } of records)
        if (actor.tokenId === key?.id && actor.userId !== null) names.set(actor.userId, ownName)
    },
    getName: ({ actor: { kind, userId } }) =>
      userId === null ? kind : (names.get(userId) ?? userId.slice(0, ID_LENGTH)),
  }
}
