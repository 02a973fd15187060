// The AWS roles that boxes assume without a key. Owners connect, verify and disconnect them.

import { useSignal } from '@preact/signals'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { AwsRole, AwsRoleList } from '../../../shared/api/federation.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import { findConnected, NO_LINK, type OpenLink } from '../../data/aws.ts'
import { session } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { CloudIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import {
  createConnectDialog,
  createDisconnectDialog,
  createLinkDialog,
  createVerifyDialog,
} from '../../views/aws/dialogs.tsx'
import { LinkPanel } from '../../views/aws/link-panel.tsx'
import { Roles } from '../../views/aws/roles.tsx'
import { TrustPolicy } from '../../views/aws/trust-policy.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { Problem } from '../../views/problem.tsx'
import { useDialog } from '../../views/use-dialog.tsx'
import { useMemberNames } from '../../views/use-member-names.ts'

const REFRESH_MS = 60_000
/** While a link is open. */
const WAITING_MS = 5_000

export function AwsPage() {
  const client = getWorkspaceClient()
  const link = useSignal<OpenLink | null>(null)
  const isWaiting = link.value !== null
  const loaded = useLoaded(() => client.listAwsRoles(), [isWaiting], isWaiting ? WAITING_MS : REFRESH_MS)
  const names = useMemberNames()
  const message = useSignal('')
  const problem = useSignal<BoxwoodError | null>(null)
  const dialog = useDialog()
  const { user } = session.value ?? {}
  const isOwner = user?.role === 'owner'
  const list = loaded.value
  const issuer = list?.issuer ?? null
  const facts = list !== null && issuer !== null ? { ...list, issuer } : null

  function onDone(text: string, role?: AwsRole): Promise<void> {
    message.value = text
    if (link.value !== null && role !== undefined)
      link.value = { ...link.value, knownIds: new Set([...link.value.knownIds, role.id]) }
    return loaded.reload()
  }
  function onCreated(created: OpenLink): void {
    link.value = created
    problem.value = null
    message.value = ''
  }
  function hideLink(): void {
    link.value = null
  }
  async function cancelLink(id: string): Promise<void> {
    problem.value = null
    try {
      await client.cancelAwsConnect(id)
      message.value = 'The link was cancelled.'
      hideLink()
    } catch (reason) {
      const error = toBoxwoodError(reason)
      problem.value = error
      // The link was used, or another one has replaced it.
      if (error.code === 'not_found') hideLink()
    }
  }

  return (
    <>
      <PageHead page="aws" command="box aws roles">
        {isOwner && facts !== null && (
          <button
            type="button"
            class="primary"
            onClick={() => dialog.open(createConnectDialog(facts, onDone))}
          >
            Connect a role
          </button>
        )}
        {isOwner && list?.quickConnect && (
          <button type="button" onClick={() => dialog.open(createLinkDialog(onCreated))}>
            Create a role in AWS
          </button>
        )}
      </PageHead>
      <p role="status">{message}</p>
      <Problem error={problem.value} />
      {list === null && loaded.error === null && <Skeleton label="Loading the roles." />}
      {list !== null && !list.enabled && <NotSetUp missing={list.missing} />}
      {list?.enabled && isOwner && !list.quickConnect && <p>{NO_LINK}</p>}
      {link.value !== null && (
        <LinkPanel
          link={link.value}
          role={findConnected(link.value, list?.roles ?? [], user?.id ?? '')}
          onCancel={() => void cancelLink(link.value?.id ?? '')}
          onHide={hideLink}
        />
      )}
      {list?.enabled && list.roles.length === 0 && <NoRole isOwner={isOwner} />}
      {list !== null && list.roles.length > 0 && (
        <Roles
          list={list}
          names={names}
          onVerify={isOwner && list.enabled ? (role) => dialog.open(createVerifyDialog(role, onDone)) : null}
          onDisconnect={isOwner ? (role) => dialog.open(createDisconnectDialog(role, onDone)) : null}
        />
      )}
      {facts !== null && <TrustPolicy facts={facts} />}
      <Freshness loaded={loaded} />
      {dialog.view}
    </>
  )
}

/** Without the federation of identities: what is missing, with the words of the API. */
function NotSetUp({ missing }: Pick<AwsRoleList, 'missing'>) {
  return (
    <EmptyState icon={CloudIcon} title="AWS roles are not set up.">
      <p>With them, boxes use AWS without keys. The operator of this Boxwood sets them up:</p>
      {missing.map((text) => (
        <p key={text}>{showHidden(text)}</p>
      ))}
      <p class="buttons">
        <a href="docs/guides/aws">How to set them up</a>
      </p>
    </EmptyState>
  )
}

function NoRole({ isOwner }: { isOwner: boolean }) {
  return (
    <EmptyState icon={CloudIcon} title="No AWS role is connected.">
      <p>
        A box uses AWS with a role instead of a key.{' '}
        {isOwner
          ? 'Connect a role that trusts this workspace: its trust policy is below.'
          : 'An owner of the workspace connects one.'}
      </p>
    </EmptyState>
  )
}
