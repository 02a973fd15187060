// The names of the members of the workspace, by their ids. Empty for a user who does not see the list.
import { mayOpenPage } from '../data/access.ts'
import { session } from '../data/live.ts'
import type { PersonViewer } from '../data/people.ts'
import { getWorkspaceClient } from '../data/workspace-client.ts'
import { useLoaded } from './loaded.tsx'

/** @param isNeeded whether the page shows other people; default: true */
export function useMemberNames(isNeeded = true): ReadonlyMap<string, string> {
  const isLoaded = isNeeded && session.value !== null && mayOpenPage(session.value.user.role, 'members')
  const { value } = useLoaded(async () => (isLoaded ? getWorkspaceClient().listMembers() : null), [isLoaded])
  return new Map(value?.members.map(({ id, email, name }) => [id, email ?? name]))
}

/** The user of the page and the names of the others, for texts about people. */
export const useViewer = (): PersonViewer => ({
  userId: session.value?.user.id ?? null,
  names: useMemberNames(),
})
