// The secrets of a box: which are mounted, and whether they work.
import type { Box } from '../../../shared/api/boxes.ts'
import type { Secret, SecretMount } from '../../../shared/api/secrets.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import {
  acceptsNewSecret,
  describeBroker,
  formatCreateCommand,
  formatHosts,
  toCreateRequest,
} from '../../data/secrets.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Commands } from '../command.tsx'
import { Freshness, useLoaded } from '../loaded.tsx'
import { type DialogProps, useDialog } from '../use-dialog.tsx'
import { NEW_SECRET_FIELDS } from './dialogs.tsx'

type Reload = () => Promise<void>

export function BoxSecrets({ box }: { box: Box }) {
  const { id, hostname, restricted } = box
  const loaded = useLoaded(() => getWorkspaceClient().listMounts(id), [id, restricted])
  const dialog = useDialog()
  const { value, reload } = loaded
  const openMount = () =>
    dialog.load(async () => {
      const { secrets } = await getWorkspaceClient().listSecrets(id)
      return createMountDialog(box, secrets, reload)
    })
  return (
    <section aria-label="Secrets">
      <h2>Secrets</h2>
      <p class="tools">
        <button
          type="button"
          disabled={restricted}
          onClick={() => void openMount()}
          aria-label={`Mount a secret: ${hostname}`}
        >
          Mount a secret
        </button>
        <Commands texts={[formatCommandLine('box', 'mounts', hostname)]} />
      </p>
      {restricted && <p>The box is restricted: it gets no secrets.</p>}
      {dialog.problem}
      {value !== null && !restricted && value.mounts.length === 0 && <p>No secret is mounted.</p>}
      {value !== null && value.mounts.length > 0 && (
        <>
          <p>{showHidden(describeBroker(value.broker))}</p>
          <MountTable
            mounts={value.mounts}
            onUnmount={(mount) => dialog.open(createUnmountDialog(box, mount, reload))}
          />
        </>
      )}
      <Freshness loaded={loaded} />
      {dialog.view}
    </section>
  )
}

type MountTableProps = { mounts: readonly SecretMount[]; onUnmount(mount: SecretMount): void }

const MountTable = ({ mounts, onUnmount }: MountTableProps) => (
  <table>
    <thead>
      <tr>
        <th scope="col">Variable</th>
        <th scope="col">Secret</th>
        <th scope="col">Hosts</th>
        <th scope="col">Actions</th>
      </tr>
    </thead>
    <tbody>
      {mounts.map((mount) => (
        <tr key={mount.id}>
          <th scope="row">{showHidden(mount.envName)}</th>
          <td data-label="Secret">{showHidden(mount.secret.name)}</td>
          <td data-label="Hosts">{showHidden(formatHosts(mount.secret.hosts))}</td>
          <td>
            <div class="actions">
              <button
                type="button"
                onClick={() => onUnmount(mount)}
                aria-label={`Unmount: ${showHidden(mount.envName)}`}
              >
                Unmount
              </button>
            </div>
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)

/** @param secrets those that the box may mount */
function createMountDialog(box: Box, secrets: readonly Secret[], reload: Reload): DialogProps {
  const { id, hostname } = box
  const find = (secretId: string | undefined) => secrets.find((secret) => secret.id === secretId)
  const isNew = ({ secretId }: Record<string, string>) => !secretId
  return {
    title: `Mount a secret on ${showHidden(hostname)}`,
    children: (
      <p>New commands get the variable with a placeholder. The box cannot read the value of the secret.</p>
    ),
    fields: [
      {
        name: 'secretId',
        label: 'Secret',
        options: [
          ...secrets.map((secret) => ({ value: secret.id, label: showHidden(secret.name) })),
          { value: '', label: 'A new secret, for this box only' },
        ],
        value: secrets[0]?.id ?? '',
      },
      ...NEW_SECRET_FIELDS.map((field) => ({ ...field, isShown: isNew })),
      {
        name: 'envName',
        label: 'Variable',
        hint: 'Default: the name of the secret',
        isShown: (values: Record<string, string>) => !isNew(values),
      },
    ],
    submitLabel: 'Mount',
    accepts: (values) => (isNew(values) ? acceptsNewSecret(values) : find(values.secretId) !== undefined),
    formatCommand(values) {
      const { secretId, envName } = values
      const mount = (name: string) =>
        formatCommandLine(
          'box',
          'mount',
          hostname,
          name,
          ...(envName && !isNew(values) ? ['--as', envName] : []),
        )
      if (!isNew(values)) return mount(find(secretId)?.name ?? 'SECRET')
      const create = formatCreateCommand({ ...values, boxIds: id }, { boxes: [box], members: [] })
      return `${create} && ${mount(values.name || 'NAME')}`
    },
    async submit(values) {
      const { secretId = '', envName } = values
      const secret = find(secretId)
      const { name, value, hosts } = toCreateRequest(values)
      await getWorkspaceClient().mountSecret(
        id,
        secret === undefined
          ? { name, value, hosts, envName: name }
          : { secretId, envName: envName || secret.name },
      )
      await reload()
    },
  }
}

const createUnmountDialog = (
  { id, hostname }: Box,
  { id: mountId, envName }: SecretMount,
  reload: Reload,
): DialogProps => ({
  title: `Unmount ${showHidden(envName)}`,
  children: (
    <p>
      The placeholder has no meaning on the box any more, and its open connections to the hosts of the secret
      are closed.
    </p>
  ),
  fields: [],
  submitLabel: 'Unmount',
  formatCommand: () => formatCommandLine('box', 'unmount', hostname, envName),
  async submit() {
    await getWorkspaceClient().unmountSecret(id, mountId)
    await reload()
  },
})
