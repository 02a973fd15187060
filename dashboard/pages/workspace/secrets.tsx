// The secrets of the workspace, without their values: who may use them, for which hosts, and where they were used.
import { useSignal } from '@preact/signals'
import type { Secret } from '../../../shared/api/secrets.ts'
import { boxes } from '../../data/live.ts'
import { formatGrants, formatHosts, type Grantees } from '../../data/secrets.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { LockIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age } from '../../views/age.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import {
  type CreateDialog,
  createChangeDialog,
  createDeleteDialog,
  createGrantDialog,
  createNewDialog,
  createOpenDialog,
  createRotateDialog,
  createUngrantDialog,
} from '../../views/secrets/dialogs.tsx'
import { SecretDetail } from '../../views/secrets/secret-detail.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

export function SecretsPage() {
  const loaded = useLoaded(() => getWorkspaceClient().listSecrets())
  const shownId = useSignal<string | null>(null)
  const dialog = useDialog()
  const { value, reload } = loaded
  const openWithGrantees = (create: (grantees: Grantees) => DialogProps) =>
    dialog.load(async () => create(await loadGrantees()))
  const secrets = value?.secrets ?? []
  const shown = secrets.find(({ id }) => id === shownId.value)
  return (
    <>
      <PageHead page="secrets" command="box secrets">
        <button
          type="button"
          class="primary"
          onClick={() => void openWithGrantees((grantees) => createNewDialog(grantees, reload))}
        >
          Create a secret
        </button>
      </PageHead>
      {dialog.problem}
      {value === null && loaded.error === null && <Skeleton label="Loading the secrets." />}
      {value !== null && secrets.length === 0 && (
        <EmptyState icon={LockIcon} title="There is no secret.">
          <p>
            A box has a placeholder instead of the value of a secret: the coordinator replaces it in HTTPS
            requests to the hosts of the secret. So a box and its coding agents use a key that they cannot
            read.
          </p>
          <p>Create one with its hosts, then mount it on the page of a box.</p>
        </EmptyState>
      )}
      {secrets.length > 0 && <p>No page shows the value of a secret. The page of a box mounts secrets.</p>}
      {secrets.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Hosts</th>
              <th scope="col">Boxes that may use it</th>
              <th scope="col">Mounts</th>
              <th scope="col">Rotated</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {secrets.map((secret) => (
              <SecretRow
                key={secret.id}
                secret={secret}
                isShown={secret === shown}
                open={(create) => dialog.open(create(secret, reload))}
                onToggle={() => {
                  shownId.value = secret === shown ? null : secret.id
                }}
              />
            ))}
          </tbody>
        </table>
      )}
      <Freshness loaded={loaded} />
      {shown && (
        <SecretDetail
          key={shown.id}
          secret={shown}
          onGrant={() => void openWithGrantees((grantees) => createGrantDialog(shown, grantees, reload))}
          onUngrant={(grant) => dialog.open(createUngrantDialog(shown, grant, reload))}
          onOpen={() => dialog.open(createOpenDialog(shown, reload))}
          onHide={() => {
            shownId.value = null
          }}
        />
      )}
      {dialog.view}
    </>
  )
}

/** The boxes of contractors are restricted, and restricted boxes get no secrets. */
async function loadGrantees(): Promise<Grantees> {
  const { members } = await getWorkspaceClient().listMembers()
  return {
    boxes: [...(boxes.value?.values() ?? [])].filter(({ restricted }) => !restricted),
    members: members.filter(({ role }) => role !== 'contractor'),
  }
}

type RowProps = {
  secret: Secret
  /** Whether the page shows its details. */
  isShown: boolean
  open(create: CreateDialog): void
  onToggle(): void
}

function SecretRow({ secret, isShown, open, onToggle }: RowProps) {
  const { name, description, hosts, mountCount, lastRotatedAt } = secret
  const button = (label: string, onClick: () => void) => (
    <button type="button" onClick={onClick} aria-label={`${label}: ${showHidden(name)}`}>
      {label}
    </button>
  )
  return (
    <tr>
      <th scope="row">
        {showHidden(name)}
        {description && <small> {showHidden(description)}</small>}
      </th>
      <td data-label="Hosts">{showHidden(formatHosts(hosts))}</td>
      <td data-label="Boxes that may use it">{showHidden(formatGrants(secret))}</td>
      <td data-label="Mounts">{mountCount}</td>
      <td data-label="Rotated">{lastRotatedAt === null ? 'never' : <Age at={lastRotatedAt} />}</td>
      <td>
        <div class="actions">
          <button
            type="button"
            onClick={onToggle}
            aria-expanded={isShown}
            aria-label={`Grants and usage: ${showHidden(name)}`}
          >
            Grants and usage
          </button>
          {button('Rotate', () => open(createRotateDialog))}
          {button('Change', () => open(createChangeDialog))}
          {button('Delete', () => open(createDeleteDialog))}
        </div>
      </td>
    </tr>
  )
}
