// The members of the workspace. Owners invite, change and remove them.
import { useSignal } from '@preact/signals'
import type { Member } from '../../../shared/api/members.ts'
import type { Role } from '../../data/access.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { session } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Avatar } from '../../design/avatar.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
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
  const { value, error } = loaded
  const active = value?.members.filter(({ status }) => status === 'active') ?? []
  const invited = value?.members.filter(({ status }) => status === 'invited') ?? []
  const onDone = (text: string) => {
    message.value = text
    return loaded.reload()
  }
  const open: Open = isOwner ? (member, create) => dialog.open(create(member, onDone)) : null
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
      {value === null && error === null && <Skeleton label="Loading the members." />}
      {active.length > 0 && <MemberTable members={active} open={open} />}
      {invited.length > 0 && (
        <>
          <h2>Invitations</h2>
          <p>These people have not signed in yet. They do it with their address.</p>
          <MemberTable members={invited} open={open} />
        </>
      )}
      <Freshness loaded={loaded} />
      {dialog.view}
    </>
  )
}

type OnDone = (message: string) => Promise<void>
type CreateDialog = (member: Member, onDone: OnDone) => DialogProps

/** Null: not an action of the user. */
type Open = ((member: Member, create: CreateDialog) => void) | null

/** @param props.members of the same status */
function MemberTable({ members, open }: { members: readonly Member[]; open: Open }) {
  const isInvited = members[0]?.status === 'invited'
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{isInvited ? 'Person' : 'Member'}</th>
          <th scope="col">Role</th>
          <th scope="col">{isInvited ? 'Invited' : 'Last seen'}</th>
          {open && <th scope="col">Actions</th>}
        </tr>
      </thead>
      <tbody>
        {members.map((member) => (
          <MemberRow key={member.id} member={member} open={open} />
        ))}
      </tbody>
    </table>
  )
}

function MemberRow({ member, open }: { member: Member; open: Open }) {
  const { id, email, name, role, status, createdAt, lastActiveAt } = member
  const title = showHidden(email ?? name)
  const isInvited = status === 'invited'
  const seenAt = isInvited ? createdAt : lastActiveAt
  return (
    <tr>
      <th scope="row">
        <span class="member">
          <Avatar name={email ?? name} />
          <span>
            {isInvited ? title : showHidden(name)}{' '}
            {id === session.value?.user.id && <span class="chip good">you</span>}
            <small>
              {isInvited ? showHidden(name) : email === null ? 'no email address' : showHidden(email)}
            </small>
          </span>
        </span>
      </th>
      <td data-label="Role">
        <span class="chip">{role}</span>
      </td>
      <td data-label={isInvited ? 'Invited' : 'Last seen'}>
        {seenAt === null ? 'never' : <Age at={seenAt} />}
      </td>
      {open && (
        <td>
          <div class="actions">
            <button
              type="button"
              onClick={() => open(member, createChangeDialog)}
              aria-label={`Change ${title}`}
            >
              Change
            </button>
            <button
              type="button"
              onClick={() => open(member, createRemoveDialog)}
              aria-label={`Remove ${title}`}
            >
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
