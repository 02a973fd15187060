// The members of the workspace. Owners invite, change and remove them.
import { useSignal } from '@preact/signals'
import type { Member } from '../../../shared/api/members.ts'
import type { Role } from '../../data/access.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { session } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Age } from '../../views/age.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

const ROLES: { value: Role; label: string }[] = [
  { value: 'member', label: 'member: uses every box of the workspace' },
  { value: 'contractor', label: 'contractor: uses only their own boxes' },
  { value: 'owner', label: 'owner: may do everything' },
]

export function MembersPage() {
  const loaded = useLoaded(() => getWorkspaceClient().listMembers())
  const message = useSignal('')
  const dialog = useDialog()
  const isOwner = session.value?.user.role === 'owner'
  const onDone = (text: string) => {
    message.value = text
    return loaded.reload()
  }
  return (
    <>
      <PageHead page="members" command="box members">
        {isOwner && (
          <button type="button" class="primary" onClick={() => dialog.open(createInviteDialog(onDone))}>
            Invite a person
          </button>
        )}
      </PageHead>
      <p role="status">{message}</p>
      {loaded.value !== null && (
        <table>
          <thead>
            <tr>
              <th scope="col">Email</th>
              <th scope="col">Name</th>
              <th scope="col">Role</th>
              <th scope="col">Status</th>
              <th scope="col">Last active</th>
              {isOwner && <th scope="col">Actions</th>}
            </tr>
          </thead>
          <tbody>
            {loaded.value.members.map((member) => (
              <MemberRow
                key={member.id}
                member={member}
                open={isOwner ? (create) => dialog.open(create(member, onDone)) : null}
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

type OnDone = (message: string) => Promise<void>
type CreateDialog = (member: Member, onDone: OnDone) => DialogProps

function MemberRow({ member, open }: { member: Member; open: ((create: CreateDialog) => void) | null }) {
  const { id, email, name, role, status, lastActiveAt } = member
  const title = showHidden(email ?? name)
  return (
    <tr>
      <th scope="row">
        {email === null ? 'none' : showHidden(email)}
        {id === session.value?.user.id && <small> you</small>}
      </th>
      <td data-label="Name">{showHidden(name)}</td>
      <td data-label="Role">{role}</td>
      <td data-label="Status">{status}</td>
      <td data-label="Last active">{lastActiveAt === null ? 'never' : <Age at={lastActiveAt} />}</td>
      {open && (
        <td>
          <div class="actions">
            <button type="button" onClick={() => open(createChangeDialog)} aria-label={`Change ${title}`}>
              Change
            </button>
            <button type="button" onClick={() => open(createRemoveDialog)} aria-label={`Remove ${title}`}>
              Remove
            </button>
          </div>
        </td>
      )}
    </tr>
  )
}

const createInviteDialog = (onDone: OnDone): DialogProps => ({
  title: 'Invite a person',
  fields: [
    { name: 'email', label: 'Email address' },
    { name: 'name', label: 'Name', hint: 'Default: the part of the address before the @' },
    { name: 'role', label: 'Role', options: ROLES, value: 'member' },
  ],
  submitLabel: 'Invite',
  accepts: (values) => Boolean(values.email),
  formatCommand: (values) =>
    formatCommandLine(
      'box',
      'members',
      'invite',
      values.email || 'EMAIL',
      '--role',
      values.role,
      ...(values.name ? ['--name', values.name] : []),
    ),
  async submit(values) {
    const { member, emailed } = await getWorkspaceClient().inviteMember({
      email: values.email ?? '',
      role: values.role as Role,
      ...(values.name && { name: values.name }),
    })
    const address = showHidden(member.email ?? member.name)
    await onDone(
      emailed
        ? `The invitation is being sent to ${address}.`
        : `${address} is invited. The coordinator sends no mail: notify the person yourself. They sign in with the address.`,
    )
  },
})

const createChangeDialog: CreateDialog = ({ id, email, name, role }, onDone) => ({
  title: `Change ${showHidden(email ?? name)}`,
  fields: [
    { name: 'name', label: 'Name', value: name },
    { name: 'role', label: 'Role', options: ROLES, value: role },
  ],
  submitLabel: 'Change',
  accepts: (values) => Boolean(values.name),
  formatCommand: (values) =>
    formatCommandLine(
      'box',
      'members',
      'set',
      email ?? id,
      ...(values.role !== role ? ['--role', values.role] : []),
      ...(values.name !== name ? ['--name', values.name] : []),
    ),
  async submit(values) {
    await getWorkspaceClient().updateMember(id, { name: values.name ?? '', role: values.role as Role })
    await onDone(`${showHidden(email ?? name)} was changed.`)
  },
})

const createRemoveDialog: CreateDialog = ({ id, email, name }, onDone) => ({
  title: `Remove ${showHidden(email ?? name)}`,
  children: <p>Their sessions and API keys end at once. Their boxes stay in the workspace.</p>,
  fields: [],
  submitLabel: 'Remove',
  formatCommand: () => formatCommandLine('box', 'members', 'rm', email ?? id),
  async submit() {
    await getWorkspaceClient().removeMember(id)
    await onDone(`${showHidden(email ?? name)} was removed.`)
  },
})
