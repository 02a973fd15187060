// The own sessions: the browsers and command lines that are signed in.

import type { Session } from '../../../shared/api/sessions.ts'
import { signOut } from '../../data/live.ts'
import { describeUserAgent } from '../../data/user-agent.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age, Expiry } from '../../views/age.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

export function SessionsPage() {
  const loaded = useLoaded(() => getWorkspaceClient().listSessions())
  const dialog = useDialog()
  return (
    <>
      <PageHead page="sessions" command="box logout" />
      <p>
        Where you are signed in to this workspace. What is shown of the browser and the address is from the
        sign-in.
      </p>
      {loaded.value === null && loaded.error === null && <Skeleton label="Loading the sessions." />}
      {loaded.value !== null && (
        <table>
          <thead>
            <tr>
              <th scope="col">Program</th>
              <th scope="col">Address</th>
              <th scope="col">Signed in</th>
              <th scope="col">Last use</th>
              <th scope="col">Expires</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {sortSessions(loaded.value.sessions).map((item) => (
              <SessionRow
                key={item.id}
                item={item}
                end={() => dialog.open(createEndDialog(item, loaded.reload))}
              />
            ))}
          </tbody>
        </table>
      )}
      <Freshness loaded={loaded} />
      {dialog.view}
    </>
  )
}

/** The current one first. */
const sortSessions = (sessions: readonly Session[]): Session[] =>
  sessions.toSorted((a, b) => Number(b.isCurrent) - Number(a.isCurrent))

function SessionRow({ item, end }: { item: Session; end(): void }) {
  const program = showHidden(describeUserAgent(item.userAgent))
  return (
    <tr>
      <th scope="row" title={item.userAgent ?? undefined}>
        {program}
        {item.isCurrent && (
          <>
            {' '}
            <span class="chip good">this session</span>
          </>
        )}
      </th>
      <td data-label="Address">{showHidden(item.address ?? 'not known')}</td>
      <td data-label="Signed in">
        <Age at={item.createdAt} />
      </td>
      <td data-label="Last use">
        <Age at={item.lastUsedAt} />
      </td>
      <td data-label="Expires">
        <Expiry at={item.expiresAt} />
      </td>
      <td>
        <button
          type="button"
          onClick={end}
          aria-label={item.isCurrent ? 'Sign out of this session' : `End the session of ${program}`}
        >
          {item.isCurrent ? 'Sign out' : 'End'}
        </button>
      </td>
    </tr>
  )
}

const createEndDialog = (
  { id, isCurrent, userAgent, address }: Session,
  reload: () => Promise<void>,
): DialogProps => ({
  title: isCurrent ? 'Sign out of this session' : 'End the session',
  children: (
    <p>
      {showHidden(describeUserAgent(userAgent))} at {showHidden(address ?? 'an unknown address')} needs to
      sign in again.
    </p>
  ),
  fields: [],
  submitLabel: isCurrent ? 'Sign out' : 'End',
  async submit() {
    if (isCurrent) return signOut()
    await getWorkspaceClient().endSession(id)
    await reload()
  },
})
