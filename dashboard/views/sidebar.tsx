// The sidebar: the pages of the dashboard, the state of the connection, and the menu of the user. A drawer on narrow screens.
import type { IconNode } from 'lucide'
import { useEffect } from 'preact/hooks'
import type { CurrentSession } from '../../shared/api/sessions.ts'
import { VERSION } from '../../shared/version.ts'
import { listWorkspacePages } from '../data/access.ts'
import { boxes, getClient, lostSince, session, signOut, snapshots } from '../data/live.ts'
import { navigations, path, resolveUrl } from '../data/navigation.ts'
import { isSidebarCollapsed, THEMES, type Theme, theme } from '../data/preferences.ts'
import type { WorkspacePage } from '../data/routes.ts'
import { showHidden } from '../data/visible-text.ts'
import { Avatar } from '../design/avatar.tsx'
import { Icon } from '../design/icon.tsx'
import { IconButton } from '../design/icon-button.tsx'
import {
  BookIcon,
  BoxIcon,
  BracesIcon,
  CameraIcon,
  ChevronsIcon,
  CloudIcon,
  CreditCardIcon,
  HardDriveIcon,
  HistoryIcon,
  KeyIcon,
  LayersIcon,
  LockIcon,
  MessagesIcon,
  MonitorIcon,
  PanelLeftIcon,
  ServerIcon,
  SettingsIcon,
  ShieldIcon,
  SignOutIcon,
  TerminalIcon,
  UsersIcon,
} from '../design/icons.ts'
import { Mark } from '../design/mark.tsx'
import { Menu } from '../design/menu.tsx'
import { Problem } from './problem.tsx'
import { useAction } from './use-action.ts'

const ICONS: Record<WorkspacePage, IconNode> = {
  prompts: MessagesIcon,
  snapshots: CameraIcon,
  environments: LayersIcon,
  secrets: LockIcon,
  images: HardDriveIcon,
  machines: ServerIcon,
  aws: CloudIcon,
  keys: KeyIcon,
  members: UsersIcon,
  policies: ShieldIcon,
  audit: HistoryIcon,
  billing: CreditCardIcon,
  sessions: MonitorIcon,
  settings: SettingsIcon,
}

/** What boxes are made of. The other pages are about the workspace. */
const WORK: readonly WorkspacePage[] = [
  'prompts',
  'snapshots',
  'environments',
  'secrets',
  'images',
  'machines',
]
/** In the menu of the user. */
const OF_USER: readonly WorkspacePage[] = ['sessions']

type SidebarProps = { isOpen: boolean; close(): void }

export function Sidebar({ isOpen, close }: SidebarProps) {
  const count = navigations.value
  useEffect(close, [count])
  useEffect(() => {
    if (!isOpen) return
    const onKey = (event: KeyboardEvent) => event.key === 'Escape' && close()
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [isOpen])
  const isCollapsed = isSidebarCollapsed.value
  return (
    <>
      {isOpen && (
        <button type="button" class="drawer-backdrop" aria-label="Close the navigation" onClick={close} />
      )}
      <aside
        id="sidebar"
        aria-label="Navigation"
        class={isOpen ? 'sidebar open' : 'sidebar'}
        data-collapsed={isCollapsed ? '' : undefined}
      >
        <div class="brand">
          <a href="./">
            <Mark />
            <span>
              <strong>Boxwood</strong>
              {session.value !== null && <small>{showHidden(session.value.workspace.name)}</small>}
            </span>
          </a>
          {session.value !== null && <WorkspaceSwitch session={session.value} />}
          <IconButton
            icon={PanelLeftIcon}
            class="collapse"
            label={isCollapsed ? 'Show the names of the pages' : 'Show only the icons of the pages'}
            onClick={() => {
              isSidebarCollapsed.value = !isCollapsed
            }}
          />
        </div>
        <Pages />
        <footer>
          {session.value !== null && <Connection />}
          <ul>
            <PageLink href="docs/guides/cli" label="The box command" icon={TerminalIcon} />
            <PageLink href="docs" label="API" icon={BracesIcon} />
            <PageLink href="docs/guides/getting-started" label="Guides" icon={BookIcon} />
          </ul>
          {session.value !== null && <Account session={session.value} />}
        </footer>
      </aside>
    </>
  )
}

/** Only for a person with several workspaces. */
function WorkspaceSwitch({ session: { workspace, workspaces } }: { session: CurrentSession }) {
  const { error, run } = useAction()
  if (workspaces.length < 2) return null
  const open = (id: string) =>
    run(async () => {
      await getClient().switchWorkspace(id)
      // Everything that the page has loaded is of the other workspace.
      location.replace(resolveUrl(''))
    })
  return (
    <>
      <Menu
        class="workspace-switch quiet icon-button"
        label="Switch to another workspace"
        head="Workspaces"
        groups={[
          workspaces.map(({ id, name, role }) => ({
            label: `${showHidden(name)} (${role})`,
            isChecked: id === workspace.id,
            onSelect: () => void (id !== workspace.id && open(id)),
          })),
        ]}
      >
        <Icon of={ChevronsIcon} size={14} />
      </Menu>
      <Problem error={error.value} />
    </>
  )
}

function Pages() {
  const pages = session.value === null ? [] : listWorkspacePages(session.value)
  const show = ([page, label]: (typeof pages)[number]) => (
    <PageLink
      key={page}
      href={`workspace/${page}`}
      label={label}
      icon={ICONS[page]}
      count={page === 'snapshots' ? snapshots.value?.size : undefined}
    />
  )
  const ofWorkspace = pages.filter(([page]) => !WORK.includes(page) && !OF_USER.includes(page))
  return (
    <nav aria-label="Pages">
      <ul>
        <PageLink href="./" label="Boxes" icon={BoxIcon} count={boxes.value?.size} />
        {pages.filter(([page]) => WORK.includes(page)).map(show)}
      </ul>
      {ofWorkspace.length > 0 && (
        <>
          <h2>Workspace</h2>
          <ul>{ofWorkspace.map(show)}</ul>
        </>
      )}
    </nav>
  )
}

type PageLinkProps = { href: string; label: string; icon: IconNode; count?: number | undefined }

function PageLink({ href, label, icon, count }: PageLinkProps) {
  const current = path.value
  const isCurrent = href === './' ? current === '' || current.startsWith('boxes/') : current === href
  return (
    <li>
      <a
        href={href}
        aria-current={isCurrent ? 'page' : undefined}
        title={isSidebarCollapsed.value ? label : undefined}
      >
        <Icon of={icon} />
        <span class="label">{label}</span>
        {count !== undefined && count > 0 && <span class="count">{count}</span>}
      </a>
    </li>
  )
}

function Connection() {
  const isLost = lostSince.value !== null
  return (
    <span class={isLost ? 'connection dot lost' : 'connection dot'}>
      <span class="label">{isLost ? 'Connecting again' : 'Live'}</span>
      <small class="label version" title="The version of Boxwood">
        {VERSION}
      </small>
    </span>
  )
}

function Account({ session: { user } }: { session: CurrentSession }) {
  const { error, run } = useAction()
  const name = showHidden(user.email ?? user.name)
  return (
    <>
      <Menu
        class="account quiet"
        label={`Account of ${name}`}
        head={`${name}, ${user.role}`}
        groups={[
          (Object.entries(THEMES) as [Theme, string][]).map(([choice, label]) => ({
            label: `${label} theme`,
            isChecked: theme.value === choice,
            onSelect() {
              theme.value = choice
            },
          })),
          [{ label: 'Sessions', icon: MonitorIcon, href: 'workspace/sessions' }],
          [{ label: 'Sign out', icon: SignOutIcon, onSelect: () => void run(signOut) }],
        ]}
      >
        <Avatar name={name} />
        <span class="label">{name}</span>
        <Icon of={ChevronsIcon} size={14} />
      </Menu>
      <Problem error={error.value} />
    </>
  )
}
