// The names of the members of the workspace, by their ids. Contractors do not see the list: theirs is empty.
import { session } from '../data/live.ts'
import { getWorkspaceClient } from '../data/workspace-client.ts'
import { useLoaded } from './loaded.tsx'

export function useMemberNames(): ReadonlyMap<string, string> {
  const isContractor = session.value?.user.role === 'contractor'
  const { value } = useLoaded(
    async () => (isContractor ? null : getWorkspaceClient().listMembers()),
    [isContractor],
  )
  return new Map(value?.members.map(({ id, email, name }) => [id, email ?? name]))
}
