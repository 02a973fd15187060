// The dialogs that create, change, rotate, grant and delete secrets.
import type { Secret, SecretGrant } from '../../../shared/api/secrets.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { SECRET_PRESETS } from '../../data/secret-presets.ts'
import {
  acceptsNewSecret,
  describeGrant,
  formatChangeCommand,
  formatCreateCommand,
  formatGrantCommand,
  type Grantees,
  getGrantee,
  toCreateRequest,
  toGrantees,
  toPatchRequest,
  warnOfNewHosts,
} from '../../data/secrets.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import type { Field } from '../form-field.tsx'
import type { DialogProps } from '../use-dialog.tsx'

type Reload = () => Promise<void>
export type CreateDialog = (secret: Secret, reload: Reload) => DialogProps

const VALUE: Field = {
  name: 'value',
  label: 'Value',
  hint: 'One line. It is never shown, and boxes have a placeholder instead of it.',
  isSecret: true,
}
const DESCRIPTION: Field = { name: 'description', label: 'Description' }
const HOSTS: Field = {
  name: 'hosts',
  label: 'Hosts',
  hint: 'One per line: api.example.com, or *.example.com for all names below it. They get the value: name only hosts of the provider.',
  isLong: true,
}

const listGranteeFields = ({ boxes, members }: Grantees, isAdvanced: boolean): Field[] => [
  {
    name: 'boxIds',
    label: 'Only these boxes',
    hint: 'Without those that are restricted: they get no secrets.',
    choices: boxes.map(({ id, hostname }) => ({ value: id, label: showHidden(hostname) })),
    isAdvanced,
  },
  {
    name: 'userIds',
    label: 'Only boxes of these members',
    choices: members.map(({ id, email }) => ({ value: id, label: showHidden(email ?? id) })),
    isAdvanced,
  },
]

/** What a new secret needs. */
export const NEW_SECRET_FIELDS: readonly Field[] = [
  {
    name: 'preset',
    label: 'For',
    options: [
      { value: '', label: 'another service' },
      ...SECRET_PRESETS.map(({ variable, label, hosts }) => ({
        value: variable,
        label,
        fills: { name: variable, hosts: hosts.join('\n') },
      })),
    ],
  },
  { name: 'name', label: 'Name', hint: 'Uppercase letters, digits and underscores: API_TOKEN' },
  VALUE,
  HOSTS,
]

export const createNewDialog = (grantees: Grantees, reload: Reload): DialogProps => ({
  title: 'Create a secret',
  children: <p>Without grants, every box of the workspace that is not restricted may use it.</p>,
  fields: [...NEW_SECRET_FIELDS, DESCRIPTION, ...listGranteeFields(grantees, true)],
  submitLabel: 'Create',
  accepts: acceptsNewSecret,
  formatCommand: (values) => formatCreateCommand(values, grantees),
  async submit(values) {
    await getWorkspaceClient().createSecret(toCreateRequest(values))
    await reload()
  },
})

export const createRotateDialog: CreateDialog = ({ id, name }, reload) => ({
  title: `Rotate ${showHidden(name)}`,
  children: (
    <p>
      The new value is used from the next request on. The placeholder stays: nothing changes on the boxes.
    </p>
  ),
  fields: [{ ...VALUE, label: 'New value' }],
  submitLabel: 'Rotate',
  accepts: ({ value }) => Boolean(value),
  formatCommand: () => formatCommandLine('box', 'secrets', 'rotate', name),
  async submit({ value = '' }) {
    await getWorkspaceClient().updateSecret(id, { value })
    await reload()
  },
})

export const createChangeDialog: CreateDialog = (secret, reload) => ({
  title: `Change ${showHidden(secret.name)}`,
  children: (
    <p>
      A further host discloses the value to this host. Open connections to a removed host are closed at once.
    </p>
  ),
  fields: [
    { ...HOSTS, value: secret.hosts.join('\n') },
    { ...DESCRIPTION, value: secret.description ?? '' },
  ],
  submitLabel: 'Change',
  accepts: (values) => toPatchRequest(secret, values) !== null,
  explain(values) {
    const warning = warnOfNewHosts(secret, values)
    return warning && showHidden(warning)
  },
  formatCommand: (values) => formatChangeCommand(secret, values),
  async submit(values) {
    const request = toPatchRequest(secret, values)
    if (request !== null) await getWorkspaceClient().updateSecret(secret.id, request)
    await reload()
  },
})

export const createDeleteDialog: CreateDialog = ({ id, name, mountCount }, reload) => ({
  title: `Delete ${showHidden(name)}`,
  children: (
    <p>
      Its value, mounts, grants and usage are deleted, and the connections that use it are closed. Mounts:{' '}
      {mountCount}.
    </p>
  ),
  fields: [],
  submitLabel: 'Delete',
  formatCommand: () => formatCommandLine('box', 'secrets', 'rm', name),
  async submit() {
    await getWorkspaceClient().deleteSecret(id)
    await reload()
  },
})

export const createGrantDialog = (secret: Secret, grantees: Grantees, reload: Reload): DialogProps => ({
  title: `Grant ${showHidden(secret.name)}`,
  children:
    secret.scope === 'workspace' ? (
      <p>The first grant limits the secret: it is unmounted from all boxes that no grant covers.</p>
    ) : null,
  fields: listGranteeFields(grantees, false),
  submitLabel: 'Grant',
  accepts: (values) => toGrantees(values).length > 0,
  formatCommand: (values) => formatGrantCommand(secret, values, grantees),
  async submit(values) {
    try {
      for (const grantee of toGrantees(values)) await getWorkspaceClient().grantSecret(secret.id, grantee)
    } finally {
      await reload()
    }
  },
})

export const createUngrantDialog = (secret: Secret, grant: SecretGrant, reload: Reload): DialogProps => ({
  title: `Remove the grant of ${showHidden(describeGrant(grant))}`,
  children: (
    <p>
      The secret is unmounted from the boxes that no other grant covers.
      {secret.grants.length === 1 && ' This is its last grant: no box may use the secret then.'}
    </p>
  ),
  fields: [],
  submitLabel: 'Remove',
  formatCommand: () => formatCommandLine('box', 'secrets', 'ungrant', secret.name, getGrantee(grant)),
  async submit() {
    await getWorkspaceClient().removeGrant(secret.id, grant.id)
    await reload()
  },
})

export const createOpenDialog: CreateDialog = ({ id, name }, reload) => ({
  title: `Open ${showHidden(name)} to the workspace`,
  children: <p>Its grants are removed: every box of the workspace that is not restricted may use it.</p>,
  fields: [],
  submitLabel: 'Open',
  formatCommand: () => formatCommandLine('box', 'secrets', 'open', name, '--yes'),
  async submit() {
    await getWorkspaceClient().updateSecret(id, { scope: 'workspace' })
    await reload()
  },
})
