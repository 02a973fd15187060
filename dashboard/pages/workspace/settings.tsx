// The settings of the workspace and of the user.
import type { CurrentSession } from '../../../shared/api/sessions.ts'
import type { Workspace } from '../../../shared/api/workspaces.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { getClient, session } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Card } from '../../design/card.tsx'
import { Setting, Settings } from '../../design/settings.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { LocalTime } from '../../views/local-time.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

export function SettingsPage() {
  const loaded = useLoaded(() => getWorkspaceClient().loadWorkspace())
  const dialog = useDialog()
  const current = session.value
  const workspace = loaded.value?.workspace
  /** The header has the names too. */
  const refresh = async () => {
    await loaded.reload()
    // Without a session, the page opens the sign-in page when the feed ends.
    session.value = (await getClient().loadSession()) ?? session.value
  }
  const open = (create: CreateDialog) => workspace && dialog.open(create(workspace, refresh))
  const openCodeDialog = (email: string, id: string) => dialog.open(createCodeDialog(email, id, refresh))
  return (
    <>
      <PageHead page="settings" command={['box workspace', 'box profile']} />
      <div class="stack">
        {workspace === undefined && loaded.error === null && <Skeleton label="Loading the workspace." />}
        {workspace && (
          <WorkspaceSettings workspace={workspace} open={current?.user.role === 'owner' ? open : null} />
        )}
        {current !== null && (
          <UserSettings
            session={current}
            open={dialog.open}
            refresh={refresh}
            openCodeDialog={openCodeDialog}
          />
        )}
      </div>
      <Freshness loaded={loaded} />
      {dialog.view}
    </>
  )
}

type CreateDialog = (workspace: Workspace, refresh: () => Promise<void>) => DialogProps

type WorkspaceSettingsProps = {
  workspace: Workspace
  /** Null: not an action of the user. */
  open: ((create: CreateDialog) => void) | null
}

function WorkspaceSettings({ workspace, open }: WorkspaceSettingsProps) {
  const { id, name, createdAt, zeroDataRetention, closable, closingAt, purgeAfter } = workspace
  return (
    <Card title="Workspace">
      {closingAt !== null && (
        <p class="problem">
          The workspace is closing. Everything in it is deleted
          {purgeAfter !== null && (
            <>
              {' '}
              after <LocalTime at={purgeAfter} />
            </>
          )}
          .
        </p>
      )}
      <Settings>
        <Setting title="Name" value={showHidden(name)}>
          {open && <Edit label="Rename" onClick={() => open(createRenameDialog)} />}
        </Setting>
        <Setting
          title="Zero data retention"
          description="The coordinator stores no commands and no output."
          value={zeroDataRetention ? 'On' : 'Off'}
        >
          {open && (
            <Edit
              label={zeroDataRetention ? 'Turn off' : 'Turn on'}
              name={`Turn ${zeroDataRetention ? 'off' : 'on'} zero data retention`}
              onClick={() => open(createRetentionDialog)}
            />
          )}
        </Setting>
        <Setting title="Created" value={<LocalTime at={createdAt} />} />
        <Setting title="Id" description="For the API and the box command." value={<code>{id}</code>} />
        {open && closingAt === null && closable && (
          <Setting title="Close the workspace" description="After some days, everything in it is deleted.">
            <button
              type="button"
              class="quiet danger"
              aria-label="Close the workspace"
              onClick={() => open(createCloseDialog)}
            >
              Close
            </button>
          </Setting>
        )}
        {open && closingAt !== null && (
          <Setting title="Reopen the workspace" description="Nothing in it is deleted then.">
            <Edit label="Reopen" name="Reopen the workspace" onClick={() => open(createReopenDialog)} />
          </Setting>
        )}
      </Settings>
    </Card>
  )
}

type UserSettingsProps = {
  session: CurrentSession
  open(props: DialogProps): void
  refresh(): Promise<void>
  openCodeDialog(email: string, id: string): void
}

function UserSettings({ session, open, refresh, openCodeDialog }: UserSettingsProps) {
  const { user } = session
  return (
    <Card title="You">
      <Settings>
        <Setting title="Your name" value={showHidden(user.name)}>
          <Edit
            label="Change"
            name="Change your name"
            onClick={() => open(createUserDialog(user.name, refresh))}
          />
        </Setting>
        <Setting
          title="Email address"
          description="With it you sign in on any machine."
          value={user.email === null ? 'None' : showHidden(user.email)}
        >
          {user.role === 'owner' && (
            <Edit
              label={user.email === null ? 'Add' : 'Change'}
              name={user.email === null ? 'Add an email address' : 'Change your email address'}
              onClick={() => open(createEmailDialog(openCodeDialog))}
            />
          )}
        </Setting>
        <Setting title="Role" value={<span class="chip">{user.role}</span>} />
        <Setting title="Sessions" description="Where you are signed in.">
          <a class="button quiet" href="workspace/sessions">
            Show
          </a>
        </Setting>
      </Settings>
    </Card>
  )
}

type EditProps = {
  label: string
  /** For screen readers, when the label needs the setting. */
  name?: string
  onClick(): void
}

const Edit = ({ label, name, onClick }: EditProps) => (
  <button type="button" class="quiet" aria-label={name} onClick={onClick}>
    {label}
  </button>
)

const createRenameDialog: CreateDialog = ({ name }, refresh) => ({
  title: 'Rename the workspace',
  fields: [{ name: 'name', label: 'Name', value: name }],
  submitLabel: 'Rename',
  accepts: (values) => Boolean(values.name),
  formatCommand: (values) => formatCommandLine('box', 'workspace', 'rename', values.name || 'NAME'),
  async submit(values) {
    await getWorkspaceClient().updateWorkspace({ name: values.name ?? '' })
    await refresh()
  },
})

const createRetentionDialog: CreateDialog = ({ zeroDataRetention }, refresh) => ({
  title: `Turn zero data retention ${zeroDataRetention ? 'off' : 'on'}`,
  children: (
    <p>
      {zeroDataRetention
        ? 'Commands and their output are stored again. What has been erased is not restored.'
        : 'The coordinator then stores no commands, no output, and no details of reports in the audit log. It erases what it has stored. This cannot be undone.'}
    </p>
  ),
  fields: [],
  submitLabel: zeroDataRetention ? 'Turn off' : 'Turn on and erase',
  formatCommand: () =>
    formatCommandLine('box', 'workspace', 'zero-data-retention', zeroDataRetention ? 'off' : 'on'),
  async submit() {
    await getWorkspaceClient().updateWorkspace({ zeroDataRetention: !zeroDataRetention })
    await refresh()
  },
})

const createCloseDialog: CreateDialog = ({ name }, refresh) => ({
  title: 'Close the workspace',
  children: (
    <p>After some days, everything in the workspace is deleted. Until then an owner can reopen it.</p>
  ),
  fields: [{ name: 'name', label: `Type ${showHidden(name)} to close the workspace` }],
  submitLabel: 'Close the workspace',
  // A keyboard types the name as it is shown.
  accepts: (values) => values.name === name || values.name === showHidden(name),
  formatCommand: () => formatCommandLine('box', 'workspace', 'close', name),
  async submit() {
    await getWorkspaceClient().closeWorkspace(name)
    await refresh()
  },
})

const createReopenDialog: CreateDialog = (_workspace, refresh) => ({
  title: 'Reopen the workspace',
  fields: [],
  submitLabel: 'Reopen',
  formatCommand: () => 'box workspace reopen',
  async submit() {
    await getWorkspaceClient().reopenWorkspace()
    await refresh()
  },
})

const createUserDialog = (name: string, refresh: () => Promise<void>): DialogProps => ({
  title: 'Change your name',
  fields: [{ name: 'name', label: 'Name', value: name }],
  submitLabel: 'Change',
  accepts: (values) => Boolean(values.name),
  async submit(values) {
    await getWorkspaceClient().renameUser(values.name ?? '')
    await refresh()
  },
})

/** With the address, the user can sign in on other machines. */
const createEmailDialog = (openCodeDialog: (email: string, id: string) => void): DialogProps => ({
  title: 'Your email address',
  children: <p>With it you sign in on any machine: a code is sent to it each time, and now too.</p>,
  fields: [{ name: 'email', label: 'Email address' }],
  submitLabel: 'Send code',
  accepts: (values) => Boolean(values.email),
  formatCommand: (values) => formatCommandLine('box', 'profile', '--email', values.email || 'ADDRESS'),
  async submit(values) {
    const email = values.email?.trim() ?? ''
    const { id } = await getWorkspaceClient().requestEmail(email)
    openCodeDialog(email, id)
  },
})

const createCodeDialog = (email: string, id: string, refresh: () => Promise<void>): DialogProps => ({
  title: 'Your email address',
  children: (
    <p>
      A code was sent to {showHidden(email)}. Without a mail server it is in the output of the coordinator.
    </p>
  ),
  fields: [{ name: 'code', label: 'Code' }],
  submitLabel: 'Confirm',
  accepts: (values) => Boolean(values.code),
  async submit(values) {
    await getWorkspaceClient().confirmEmail(id, values.code ?? '')
    await refresh()
  },
})
