// The environments: what new boxes start with, and which boxes have which version.
import { useSignal } from '@preact/signals'
import type { Environment, UpgradedEnvironment } from '../../../shared/api/environments.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import {
  acceptsEnvironment,
  formatChangeCommand,
  formatCreateCommand,
  listEnvironmentBoxes,
  listToggles,
  TOGGLE_NAMES,
  TOGGLES,
  toCreateRequest,
  toFormValues,
  toPatchRequest,
} from '../../data/environments.ts'
import { boxes, getClient } from '../../data/live.ts'
import { formatBoxPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { LayersIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age } from '../../views/age.tsx'
import type { Field } from '../../views/form-field.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

type Reload = () => Promise<void>

export function EnvironmentsPage() {
  const loaded = useLoaded(() => getClient().listEnvironments())
  const upgraded = useSignal<(UpgradedEnvironment & { name: string }) | null>(null)
  const dialog = useDialog()
  const { value, reload } = loaded
  return (
    <>
      <PageHead page="environments" command="box environments">
        <button type="button" class="primary" onClick={() => dialog.open(createDialog(reload))}>
          Create an environment
        </button>
      </PageHead>
      <p role="status">{upgraded.value !== null && formatUpgrade(upgraded.value)}</p>
      {value === null && loaded.error === null && <Skeleton label="Loading the environments." />}
      {value !== null && value.environments.length === 0 && (
        <EmptyState icon={LayersIcon} title="There is no environment.">
          <p>
            New boxes of an environment start with its variables, files, repositories and image. Each change
            of it makes a version, and a box keeps its version until it is upgraded.
          </p>
          <p>Create one with the variables that your boxes need. Keys and tokens are secrets instead.</p>
        </EmptyState>
      )}
      {value !== null && value.environments.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Version</th>
              <th scope="col">Content</th>
              <th scope="col">Boxes</th>
              <th scope="col">Changed</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {value.environments.map((environment) => (
              <EnvironmentRow
                key={environment.id}
                environment={environment}
                open={(create) => dialog.open(create(environment, reload))}
                upgrade={() =>
                  dialog.open(
                    createUpgradeDialog(environment, async (result) => {
                      upgraded.value = { ...result, name: environment.name }
                      await reload()
                    }),
                  )
                }
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

function formatUpgrade({
  name,
  upgraded,
  skipped,
  latestVersionNo,
}: UpgradedEnvironment & { name: string }): string {
  const failed = skipped.filter(({ reason }) => reason !== 'up_to_date')
  const skippedText = failed.map(({ hostname, reason }) => `${hostname} (${reason})`).join(', ')
  return `${upgraded.length} boxes of ${showHidden(name)} have got version ${latestVersionNo}.${skippedText && ` Skipped: ${showHidden(skippedText)}.`}`
}

const SHOWN_BOXES = 20

type CreateDialog = (environment: Environment, reload: Reload) => DialogProps
type RowProps = { environment: Environment; open(create: CreateDialog): void; upgrade(): void }

function EnvironmentRow({ environment, open, upgrade }: RowProps) {
  const { name, description, isDefault, latestVersionNo, updatedAt } = environment
  const users = listEnvironmentBoxes(boxes.value ?? new Map(), environment)
  const button = (label: string, onClick: () => void) => (
    <button type="button" onClick={onClick} aria-label={`${label}: ${name}`}>
      {label}
    </button>
  )
  return (
    <tr>
      <th scope="row">
        {showHidden(name)}
        {isDefault && <small> default</small>}
        {description && <small> {showHidden(description)}</small>}
      </th>
      <td data-label="Version">{latestVersionNo}</td>
      <td data-label="Content">
        <Content environment={environment} />
      </td>
      <td data-label="Boxes">
        {users.length === 0
          ? 'none'
          : users.slice(0, SHOWN_BOXES).map(({ id, hostname, environmentVersionNo }, index) => (
              <span key={id}>
                {index > 0 && ', '}
                <a href={formatBoxPath(hostname)}>{showHidden(hostname)}</a>
                {environmentVersionNo !== latestVersionNo && ` (version ${environmentVersionNo})`}
              </span>
            ))}
        {users.length > SHOWN_BOXES && ` and ${users.length - SHOWN_BOXES} more`}
      </td>
      <td data-label="Changed">
        <Age at={updatedAt} />
      </td>
      <td>
        <div class="actions">
          {button('Change', () => open(createChangeDialog))}
          {!isDefault && button('Make it the default', () => open(createDefaultDialog))}
          {users.some(({ environmentVersionNo }) => environmentVersionNo !== latestVersionNo) &&
            button('Upgrade the boxes', upgrade)}
          {button('Delete', () => open(createDeleteDialog))}
        </div>
      </td>
    </tr>
  )
}

function Content({ environment: { vars, files, repos, image, toggles } }: { environment: Environment }) {
  const lines = [
    image !== null && `image ${image}`,
    vars.length > 0 && `variables ${vars.map(({ name }) => name).join(', ')}`,
    files.length > 0 && `files ${files.map(({ path }) => path).join(', ')}`,
    repos.length > 0 && `repositories ${repos.map(({ repo }) => repo).join(', ')}`,
    listToggles(toggles).length > 0 && listToggles(toggles).join(', '),
  ].filter((line) => line !== false)
  if (lines.length === 0) return <>empty</>
  return (
    <>
      {lines.map((line) => (
        <div key={line}>{showHidden(line)}</div>
      ))}
    </>
  )
}

const VARIABLES: Field = {
  name: 'vars',
  label: 'Variables',
  hint: 'One NAME=VALUE per line. All members read them: keys and tokens are secrets, set by box secrets set.',
  isLong: true,
}
const CHANNELS: Field = {
  name: 'toggles',
  label: 'Credentials',
  hint: 'What new boxes get without a mount of their own.',
  choices: TOGGLE_NAMES.map((name) => ({ value: name, label: TOGGLES[name] })),
  isAdvanced: true,
}
const IMAGE: Field = { name: 'image', label: 'Image', hint: 'Such as debian:12. Default: that of the region' }
const DESCRIPTION: Field = { name: 'description', label: 'Description' }

const createDialog = (reload: Reload): DialogProps => ({
  title: 'Create an environment',
  fields: [
    { name: 'name', label: 'Name' },
    DESCRIPTION,
    VARIABLES,
    IMAGE,
    {
      name: 'repos',
      label: 'Repositories',
      hint: 'One https:// URL, or owner/name of GitHub, per line',
      isLong: true,
      isAdvanced: true,
    },
    CHANNELS,
    {
      name: 'isDefault',
      label: 'New boxes that name no environment',
      options: [
        { value: '', label: 'do not get it' },
        { value: 'yes', label: 'get it' },
      ],
      isAdvanced: true,
    },
  ],
  submitLabel: 'Create',
  accepts: acceptsEnvironment,
  formatCommand: formatCreateCommand,
  async submit(values) {
    await getWorkspaceClient().createEnvironment(toCreateRequest(values))
    await reload()
  },
})

const createChangeDialog: CreateDialog = (environment, reload) => {
  const values = toFormValues(environment)
  const fields = [{ name: 'name', label: 'Name' }, DESCRIPTION, VARIABLES, IMAGE, CHANNELS]
  return {
    title: `Change the environment ${showHidden(environment.name)}`,
    children: (
      <p>
        Files and repositories are changed with <code>box environments file</code> and{' '}
        <code>box environments repo</code>
        {values.vars === undefined && ', and variables of several lines with box environments set'}.
      </p>
    ),
    fields: fields.flatMap((field) => {
      const value = values[field.name]
      return value === undefined ? [] : [{ ...field, value }]
    }),
    submitLabel: 'Change',
    accepts: (changed) => acceptsEnvironment(changed) && toPatchRequest(environment, changed) !== null,
    formatCommand: (changed) => formatChangeCommand(environment, changed),
    async submit(changed) {
      const request = toPatchRequest(environment, changed)
      if (request !== null) await getWorkspaceClient().updateEnvironment(environment.id, request)
      await reload()
    },
  }
}

const createDefaultDialog: CreateDialog = ({ id, name }, reload) => ({
  title: `Make ${showHidden(name)} the default`,
  children: <p>New boxes that name no environment get it. Boxes that exist stay unchanged.</p>,
  fields: [],
  submitLabel: 'Make it the default',
  formatCommand: () => formatCommandLine('box', 'environments', 'default', name),
  async submit() {
    await getWorkspaceClient().setDefaultEnvironment(id)
    await reload()
  },
})

const createUpgradeDialog = (
  { id, name, latestVersionNo }: Environment,
  onUpgraded: (result: UpgradedEnvironment) => Promise<void>,
): DialogProps => ({
  title: `Upgrade the boxes of ${showHidden(name)} to version ${latestVersionNo}`,
  children: <p>Running boxes get its files and variables at once, the others when they start.</p>,
  fields: [],
  submitLabel: 'Upgrade',
  formatCommand: () => formatCommandLine('box', 'environments', 'upgrade', name),
  async submit() {
    await onUpgraded(await getWorkspaceClient().upgradeEnvironment(id))
  },
})

const createDeleteDialog: CreateDialog = ({ id, name }, reload) => ({
  title: `Delete the environment ${showHidden(name)}`,
  children: <p>Boxes and snapshots keep their versions.</p>,
  fields: [],
  submitLabel: 'Delete',
  formatCommand: () => formatCommandLine('box', 'environments', 'rm', name),
  async submit() {
    await getWorkspaceClient().deleteEnvironment(id)
    await reload()
  },
})
