// The settings of the workspace and of the user.
import type { Workspace } from '../../../shared/api/workspaces.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { getClient, session } from '../../data/live.ts'
import { resolveUrl } from '../../data/navigation.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
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
  const others = current?.workspaces.filter(({ id }) => id !== current.workspace.id) ?? []
  return (
    <>
      <PageHead page="settings" command="box workspace" />
      {workspace && (
        <WorkspaceSettings workspace={workspace} open={current?.user.role === 'owner' ? open : null} />
      )}
      <Freshness loaded={loaded} />
      <h2>You</h2>
      {current !== null && (
        <p class="tools">
          <span>
            {showHidden(current.user.name)}
            {current.user.email !== null && `, ${showHidden(current.user.email)}`}, {current.user.role}
          </span>
          <button type="button" onClick={() => dialog.open(createUserDialog(current.user.name, refresh))}>
            Change your name
          </button>
          {current.user.role === 'owner' && (
            <button type="button" onClick={() => dialog.open(createEmailDialog(openCodeDialog))}>
              {current.user.email === null ? 'Add an email address' : 'Change your email address'}
            </button>
          )}
          {others.length > 0 && (
            <button type="button" onClick={() => dialog.open(createSwitchDialog(others))}>
              Switch to another workspace
            </button>
          )}
        </p>
      )}
      {dialog.view}
    </>
  )
}

type CreateDialog = (workspace: Workspace, refresh: () => Promise<void>) => DialogProps

function WorkspaceSettings({
  workspace,
  open,
}: {
  workspace: Workspace
  open: ((create: CreateDialog) => void) | null
}) {
  const { id, name, createdAt, zeroDataRetention, closable, closingAt, purgeAfter } = workspace
  return (
    <>
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
      <dl>
        <div>
          <dt>Name</dt>
          <dd>{showHidden(name)}</dd>
        </div>
        <div>
          <dt>Id</dt>
          <dd>{id}</dd>
        </div>
        <div>
          <dt>Created</dt>
          <dd>
            <LocalTime at={createdAt} />
          </dd>
        </div>
        <div>
          <dt>Zero data retention</dt>
          <dd>{zeroDataRetention ? 'on: no commands and no output are stored' : 'off'}</dd>
        </div>
      </dl>
      {open && (
        <p class="buttons">
          <button type="button" onClick={() => open(createRenameDialog)}>
            Rename
          </button>
          <button type="button" onClick={() => open(createRetentionDialog)}>
            Turn zero data retention {zeroDataRetention ? 'off' : 'on'}
          </button>
          {closingAt === null ? (
            closable && (
              <button type="button" onClick={() => open(createCloseDialog)}>
                Close the workspace
              </button>
            )
          ) : (
            <button type="button" onClick={() => open(createReopenDialog)}>
              Reopen the workspace
            </button>
          )}
        </p>
      )}
    </>
  )
}

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

const createSwitchDialog = (others: readonly { id: string; name: string; role: string }[]): DialogProps => ({
  title: 'Switch to another workspace',
  fields: [
    {
      name: 'id',
      label: 'Workspace',
      options: others.map(({ id, name, role }) => ({ value: id, label: `${showHidden(name)} (${role})` })),
      value: others[0]?.id ?? '',
    },
  ],
  submitLabel: 'Switch',
  formatCommand: (values) => formatCommandLine('box', 'workspace', 'use', values.id),
  async submit(values) {
    await getWorkspaceClient().switchWorkspace(values.id ?? '')
    // Everything that the page has loaded is of the other workspace.
    location.replace(resolveUrl(''))
  },
})
