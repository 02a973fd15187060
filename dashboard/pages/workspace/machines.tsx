// Machines that are enrolled as boxes: the steps of a new one, unused commands, and the rollout of agents.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Enrollment } from '../../../shared/api/machines.ts'
import { mayEnrollMachines } from '../../data/access.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { formatState } from '../../data/items.ts'
import { boxes, getClient, now, session } from '../../data/live.ts'
import { type Expected, findJoined, listMachines } from '../../data/machines.ts'
import { formatBoxPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Card } from '../../design/card.tsx'
import { Setting, Settings } from '../../design/settings.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Steps } from '../../design/steps.tsx'
import { Age, Expiry } from '../../views/age.tsx'
import { Command } from '../../views/command.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'
import { Rollout } from './rollout.tsx'

export function MachinesPage() {
  const client = getWorkspaceClient()
  const machines = boxes.value === null ? null : listMachines(boxes.value)
  const enrollments = useLoaded(() => client.listEnrollments(), [machines?.length])
  const policies = useLoaded(() => getClient().loadPolicies())
  const agents = useLoaded(() => client.listAgents(), [boxes.value?.size])
  const expected = useSignal<Expected | null>(null)
  const dialog = useDialog()
  const role = session.value?.user.role ?? 'contractor'
  const mayEnroll =
    policies.value !== null && mayEnrollMachines(role, policies.value.policy.machineEnrollment)
  const onCreated = (value: Expected) => {
    expected.value = value
    return enrollments.reload()
  }
  const addButton = (
    <button type="button" class="primary" onClick={() => dialog.open(createDialog(onCreated))}>
      Add a machine
    </button>
  )
  // The first step has the button when there is no machine.
  const isFirst = machines?.length === 0 && expected.value === null
  return (
    <>
      <PageHead page="machines" command={['box ls --filter kind=machine', 'box agents']}>
        {mayEnroll && !isFirst && addButton}
      </PageHead>
      {policies.value !== null && !mayEnroll && (
        <p>Only owners may add machines: a policy of the workspace.</p>
      )}
      <div class="stack">
        {machines === null && <Skeleton label="Loading the machines." />}
        {(expected.value !== null || (isFirst && mayEnroll)) && (
          <Join expected={expected.value} addButton={addButton} />
        )}
        {machines !== null && machines.length > 0 && (
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col">Tier</th>
                <th scope="col">Region</th>
                <th scope="col">Joined</th>
              </tr>
            </thead>
            <tbody>
              {machines.map(({ id, hostname, observedState, tier, region, createdAt }) => (
                <tr key={id}>
                  <th scope="row">
                    <a href={formatBoxPath(hostname)}>{showHidden(hostname)}</a>
                  </th>
                  <td data-label="State">
                    <span class={`state ${observedState}`}>{formatState(observedState)}</span>
                  </td>
                  <td data-label="Tier">{tier}</td>
                  <td data-label="Region">{region}</td>
                  <td data-label="Joined">
                    <Age at={createdAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <Tokens
          enrollments={enrollments.value?.enrollments ?? []}
          revoke={(enrollment) => dialog.open(createRevokeDialog(enrollment, enrollments.reload))}
        />
        <Rollout loaded={agents} />
      </div>
      <Freshness
        loaded={{
          ...enrollments,
          error: enrollments.error ?? agents.error,
          reload: async () => void (await Promise.all([enrollments.reload(), agents.reload()])),
        }}
      />
      {dialog.view}
    </>
  )
}

/** The steps from the command to the box. @param props.expected null: no command was created on this page */
function Join({ expected, addButton }: { expected: Expected | null; addButton: ComponentChildren }) {
  const joined = expected && boxes.value && findJoined(expected, boxes.value)
  const isExpired = expected !== null && !joined && now.value > Date.parse(expected.enrollment.expiresAt)
  // The command is shown in the first step until a machine has used it.
  const current = joined ? 2 : 0
  return (
    <Card title="Join a machine">
      <p>
        A server, a virtual machine or a laptop of yours becomes a box: terminals, commands, files and coding
        agents work there as on any other box.
      </p>
      <Steps current={current} titles={['Copy the command', 'Wait for the machine', 'Open it']}>
        {expected === null ? (
          addButton
        ) : (
          <>
            <Command text={expected.command} />
            <small>
              {isExpired
                ? 'The command has expired. Add the machine again.'
                : 'Run it on the machine. It works once, and is shown only now.'}
            </small>
          </>
        )}
        <small role="status">
          {joined ? (
            `${showHidden(joined.hostname)} has joined.`
          ) : expected === null || isExpired ? (
            'This page shows when it has joined.'
          ) : (
            <>
              Waiting for the machine. The command expires <Expiry at={expected.enrollment.expiresAt} />.
            </>
          )}
        </small>
        {joined ? (
          <a class="button primary" href={formatBoxPath(joined.hostname)}>
            Open {showHidden(joined.hostname)}
          </a>
        ) : (
          <small>The machine has a page of its own, like each box.</small>
        )}
      </Steps>
    </Card>
  )
}

type TokensProps = { enrollments: readonly Enrollment[]; revoke(enrollment: Enrollment): void }

function Tokens({ enrollments, revoke }: TokensProps) {
  if (enrollments.length === 0) return null
  return (
    <Card title="Commands that no machine has used">
      <Settings>
        {enrollments.map((enrollment) => (
          <Setting
            key={enrollment.id}
            title={showHidden(enrollment.name ?? 'Any name')}
            description={`Region ${enrollment.region}`}
            value={
              <>
                expires <Expiry at={enrollment.expiresAt} />
              </>
            }
          >
            <button
              type="button"
              class="quiet"
              onClick={() => revoke(enrollment)}
              aria-label={`Revoke the token ${showHidden(enrollment.name ?? enrollment.id)}`}
            >
              Revoke
            </button>
          </Setting>
        ))}
      </Settings>
    </Card>
  )
}

const createDialog = (onCreated: (expected: Expected) => Promise<void>): DialogProps => ({
  title: 'Add a machine',
  fields: [{ name: 'name', label: 'Name of the box', hint: 'Default: the hostname of the machine' }],
  submitLabel: 'Show the command',
  formatCommand: ({ name }) => formatCommandLine('box', 'machine', 'add', name),
  async submit({ name }) {
    const { enrollment, command } = await getWorkspaceClient().createEnrollment(name ? { name } : {})
    const knownIds = new Set(listMachines(boxes.value ?? new Map()).map(({ id }) => id))
    await onCreated({ enrollment, command, knownIds })
  },
})

const createRevokeDialog = ({ id, name }: Enrollment, reload: () => Promise<void>): DialogProps => ({
  title: `Revoke the command for ${showHidden(name ?? 'a machine')}`,
  children: <p>The command does not work any more.</p>,
  fields: [],
  submitLabel: 'Revoke',
  formatCommand: () => formatCommandLine('box', 'machine', 'rm', name ?? id),
  async submit() {
    await getWorkspaceClient().deleteEnrollment(id)
    await reload()
  },
})
