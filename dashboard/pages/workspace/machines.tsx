// Machines that are enrolled as boxes: a new one with the line to paste, unused tokens, and the rollout of agents.
import { useSignal } from '@preact/signals'
import type { Enrollment } from '../../../shared/api/machines.ts'
import { mayEnrollMachines } from '../../data/access.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { formatState } from '../../data/items.ts'
import { boxes, getClient, now, session } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { type Expected, findJoined, listMachines } from '../../data/machines.ts'
import { formatBoxPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Age } from '../../views/age.tsx'
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
  const expected = useSignal<Expected | null>(null)
  const dialog = useDialog()
  const role = session.value?.user.role ?? 'contractor'
  const mayEnroll =
    policies.value !== null && mayEnrollMachines(role, policies.value.policy.machineEnrollment)
  const onCreated = (value: Expected) => {
    expected.value = value
    return enrollments.reload()
  }
  return (
    <>
      <PageHead page="machines" command="box ls --filter kind=machine">
        {mayEnroll && (
          <button type="button" class="primary" onClick={() => dialog.open(createDialog(onCreated))}>
            Add a machine
          </button>
        )}
      </PageHead>
      {policies.value !== null && !mayEnroll && (
        <p>Only owners may add machines: the policy machineEnrollment.</p>
      )}
      {expected.value !== null && <Joining expected={expected.value} />}
      {machines === null ? (
        <p>Loading the machines.</p>
      ) : machines.length === 0 ? (
        <p>No machine is enrolled.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col">Tier</th>
              <th scope="col">Region</th>
              <th scope="col">Enrolled</th>
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
                <td data-label="Enrolled">
                  <Age at={createdAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <h2>Unused tokens</h2>
      <Tokens
        enrollments={enrollments.value?.enrollments ?? []}
        revoke={(enrollment) => dialog.open(createRevokeDialog(enrollment, enrollments.reload))}
      />
      <Freshness loaded={enrollments} />
      <Rollout />
      {dialog.view}
    </>
  )
}

/** The line to paste, until the machine has joined or the token has expired. */
function Joining({ expected }: { expected: Expected }) {
  const joined = boxes.value && findJoined(expected, boxes.value)
  const { expiresAt } = expected.enrollment
  if (joined)
    return (
      <p role="status" class="next-steps">
        The machine has joined as the box{' '}
        <a href={formatBoxPath(joined.hostname)}>{showHidden(joined.hostname)}</a>.
      </p>
    )
  const isExpired = now.value > Date.parse(expiresAt)
  return (
    <section class="next-steps" aria-label="The line for the machine">
      <p>Run this line on the machine. It works once, and is shown only now.</p>
      <p>
        <Command text={expected.command} />
      </p>
      <p role="status">
        {isExpired
          ? 'The line has expired. Add the machine again.'
          : `Waiting for the machine, until ${formatLocalTime(Date.parse(expiresAt))}.`}
      </p>
    </section>
  )
}

function Tokens({
  enrollments,
  revoke,
}: {
  enrollments: readonly Enrollment[]
  revoke(enrollment: Enrollment): void
}) {
  if (enrollments.length === 0) return <p>There is no unused token.</p>
  return (
    <ul>
      {enrollments.map((enrollment) => (
        <li key={enrollment.id}>
          {showHidden(enrollment.name ?? 'name chosen when it joins')}, {enrollment.region}, until{' '}
          {formatLocalTime(Date.parse(enrollment.expiresAt))}{' '}
          <button
            type="button"
            onClick={() => revoke(enrollment)}
            aria-label={`Revoke the token ${showHidden(enrollment.name ?? enrollment.id)}`}
          >
            Revoke
          </button>
        </li>
      ))}
    </ul>
  )
}

const createDialog = (onCreated: (expected: Expected) => Promise<void>): DialogProps => ({
  title: 'Add a machine',
  fields: [{ name: 'name', label: 'Name of the box', hint: 'Default: the hostname of the machine' }],
  submitLabel: 'Show the line to run',
  formatCommand: ({ name }) => formatCommandLine('box', 'machine', 'add', name),
  async submit({ name }) {
    const { enrollment, command } = await getWorkspaceClient().createEnrollment(name ? { name } : {})
    const knownIds = new Set(listMachines(boxes.value ?? new Map()).map(({ id }) => id))
    await onCreated({ enrollment, command, knownIds })
  },
})

const createRevokeDialog = ({ id, name }: Enrollment, reload: () => Promise<void>): DialogProps => ({
  title: `Revoke the token ${showHidden(name ?? id)}`,
  children: <p>The line with the token does not work any more.</p>,
  fields: [],
  submitLabel: 'Revoke',
  formatCommand: () => formatCommandLine('box', 'machine', 'rm', name ?? id),
  async submit() {
    await getWorkspaceClient().deleteEnrollment(id)
    await reload()
  },
})
