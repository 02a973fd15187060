// The API keys: of all users for an owner, else the own ones.

import { useSignal } from '@preact/signals'
import type { ApiKey, KeyWithSecret } from '../../../shared/api/keys.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import {
  AREA_LEVELS,
  AREA_WORDS,
  AREAS,
  acceptsKey,
  isLimited,
  LIMITED,
  listLimits,
  listLimitWords,
  parseAccess,
  sortKeys,
} from '../../data/keys.ts'
import { boxes, session } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Chips } from '../../design/chips.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { KeyIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age, Expiry } from '../../views/age.tsx'
import { type Field, splitLines } from '../../views/form-field.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { Secret } from '../../views/secret.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'
import { useMemberNames } from '../../views/use-member-names.ts'

const EXPIRIES = [
  { value: '', label: 'never' },
  ...[7, 30, 90, 365].map((days) => ({ value: String(days), label: `in ${days} days` })),
]

export function KeysPage() {
  const loaded = useLoaded(() => getWorkspaceClient().listKeys())
  const secret = useSignal<KeyWithSecret | null>(null)
  const dialog = useDialog()
  // Only owners see keys of others.
  const isOwner = session.value?.user.role === 'owner'
  const names = useMemberNames(isOwner)
  const keys = sortKeys(loaded.value?.keys ?? [])
  const onSecret = (value: KeyWithSecret | null) => {
    secret.value = value
    return loaded.reload()
  }
  return (
    <>
      <PageHead page="keys" command="box keys">
        <button type="button" class="primary" onClick={() => dialog.open(createDialog(onSecret))}>
          Create a key
        </button>
      </PageHead>
      {secret.value !== null && (
        <Secret
          title={`The secret of the key ${showHidden(secret.value.key.name)}`}
          text={secret.value.secret}
          hint="It is shown only now: the coordinator stores only its hash."
          onHide={() => {
            secret.value = null
          }}
        />
      )}
      {loaded.value === null && loaded.error === null && <Skeleton label="Loading the keys." />}
      {loaded.value !== null && keys.length === 0 && (
        <EmptyState icon={KeyIcon} title="There is no API key.">
          <p>
            A script, a CI job or an agent uses the API with a key. A key can be limited to a few boxes and
            actions. Create one, and put its secret where the program reads it.
          </p>
        </EmptyState>
      )}
      {keys.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Limits</th>
              <th scope="col">Last use</th>
              <th scope="col">Expires</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {keys.map((key) => (
              <KeyRow
                key={key.id}
                apiKey={key}
                names={names}
                open={(create) => dialog.open(create(key, onSecret))}
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

type OnSecret = (value: KeyWithSecret | null) => Promise<void>
type CreateDialog = (key: ApiKey, onSecret: OnSecret) => DialogProps

type KeyRowProps = {
  apiKey: ApiKey
  /** Of the members, by id. */
  names: ReadonlyMap<string, string>
  open(create: CreateDialog): void
}

function KeyRow({ apiKey, names, open }: KeyRowProps) {
  const { name, kind, ending, userId, lastUsedAt, expiresAt } = apiKey
  const owner =
    userId === null
      ? 'no user'
      : userId === session.value?.user.id
        ? 'you'
        : (names.get(userId) ?? 'a member')
  return (
    <tr>
      <th scope="row">
        {showHidden(name)} {ending !== null && <code>…{ending}</code>}{' '}
        <small class="truncate" title={showHidden(owner)}>
          {kind === 'machine' ? 'sign-in of a machine' : 'API key'}, {showHidden(owner)}
        </small>
      </th>
      <td data-label="Limits">
        <Chips texts={listLimits(apiKey, session.value?.user.id, getBoxName).map(showHidden)} />
      </td>
      <td data-label="Last use">{lastUsedAt === null ? 'never' : <Age at={lastUsedAt} />}</td>
      <td data-label="Expires">{expiresAt === null ? 'never' : <Expiry at={expiresAt} />}</td>
      <td>
        <div class="actions">
          <button
            type="button"
            onClick={() => open(createChangeDialog)}
            aria-label={`Change ${showHidden(name)}`}
          >
            Change
          </button>
          <button
            type="button"
            onClick={() => open(createRotateDialog)}
            aria-label={`Rotate ${showHidden(name)}`}
          >
            Rotate
          </button>
          <button
            type="button"
            onClick={() => open(createRevokeDialog)}
            aria-label={`Revoke ${showHidden(name)}`}
          >
            Revoke
          </button>
        </div>
      </td>
    </tr>
  )
}

const getBoxName = (id: string): string => showHidden(boxes.value?.get(id)?.hostname ?? id)

function listLimitFields(access: ApiKey['access'], boxIds: readonly string[]): Field[] {
  const live = [...(boxes.value?.values() ?? [])]
  const known = new Set(live.map(({ id }) => id))
  return [
    {
      name: 'actions',
      label: 'What it may do',
      options: [
        { value: 'all', label: 'everything that its user may do' },
        { value: LIMITED, label: 'only what is chosen here' },
      ],
      value: access === null ? 'all' : LIMITED,
    },
    ...AREAS.map((area) => ({
      name: area,
      label: AREA_WORDS[area].label,
      options: AREA_LEVELS[area].map((level) => ({
        value: level,
        label: AREA_WORDS[area].levels[level] ?? 'no access',
      })),
      value: access?.[area] ?? 'none',
      isShown: isLimited,
    })),
    {
      name: 'boxIds',
      label: 'Only these boxes',
      hint: 'Without a choice: all boxes',
      choices: [
        ...live.map(({ id, hostname }) => ({ value: id, label: showHidden(hostname) })),
        ...boxIds.filter((id) => !known.has(id)).map((id) => ({ value: id, label: id })),
      ],
      value: boxIds.join('\n'),
    },
  ]
}

function listWords(values: Record<string, string>, isChange: boolean): string[] {
  return listLimitWords(parseAccess(values), splitLines(values.boxIds).map(getBoxName), isChange)
}

function createDialog(onSecret: OnSecret): DialogProps {
  const isOwner = session.value?.user.role === 'owner'
  const users = [
    { value: '', label: 'you' },
    { value: 'none', label: 'no user: the key stays when you leave the workspace' },
  ]
  return {
    title: 'Create an API key',
    fields: [
      { name: 'name', label: 'What the key is for', hint: 'Such as ci' },
      { name: 'days', label: 'Expires', options: EXPIRIES, value: '90' },
      ...(isOwner ? [{ name: 'user', label: 'Acts as', options: users }] : []),
      ...listLimitFields(null, []),
    ],
    submitLabel: 'Create the key',
    accepts: acceptsKey,
    formatCommand: (values) =>
      formatCommandLine(
        'box',
        'keys',
        'create',
        values.name || 'NAME',
        ...(values.days ? ['--expires', `${values.days}d`] : []),
        values.user === 'none' && '--no-user',
        ...listWords(values, false),
      ),
    async submit(values) {
      const boxIds = splitLines(values.boxIds)
      const access = parseAccess(values)
      await onSecret(
        await getWorkspaceClient().createKey({
          name: values.name ?? '',
          ...(values.days && { expiresInDays: Number(values.days) }),
          ...(values.user === 'none' && { user: null }),
          ...(access && { access }),
          ...(boxIds.length > 0 && { boxIds }),
        }),
      )
    },
  }
}

const createChangeDialog: CreateDialog = ({ id, name, access, boxIds }, onSecret) => ({
  title: `Change the key ${showHidden(name)}`,
  fields: [{ name: 'name', label: 'Name', value: name }, ...listLimitFields(access, boxIds ?? [])],
  submitLabel: 'Change the key',
  accepts: acceptsKey,
  formatCommand: (values) =>
    formatCommandLine(
      'box',
      'keys',
      'set',
      name,
      ...(values.name && values.name !== name ? ['--name', values.name] : []),
      ...listWords(values, true),
    ),
  async submit(values) {
    const chosen = splitLines(values.boxIds)
    await getWorkspaceClient().updateKey(id, {
      name: values.name ?? '',
      access: parseAccess(values),
      boxIds: chosen.length > 0 ? chosen : null,
    })
    await onSecret(null)
  },
})

const createRotateDialog: CreateDialog = ({ id, name }, onSecret) => ({
  title: `Rotate the key ${showHidden(name)}`,
  children: <p>The key gets a new secret. Requests with the current one are refused at once.</p>,
  fields: [],
  submitLabel: 'Rotate',
  formatCommand: () => formatCommandLine('box', 'keys', 'rotate', name),
  async submit() {
    await onSecret(await getWorkspaceClient().rotateKey(id))
  },
})

const createRevokeDialog: CreateDialog = ({ id, name }, onSecret) => ({
  title: `Revoke the key ${showHidden(name)}`,
  children: <p>Requests with the key are refused at once. This cannot be undone.</p>,
  fields: [],
  submitLabel: 'Revoke',
  formatCommand: () => formatCommandLine('box', 'keys', 'rm', name),
  async submit() {
    await getWorkspaceClient().revokeKey(id)
    await onSecret(null)
  },
})
