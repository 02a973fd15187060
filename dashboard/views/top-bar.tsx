// The bar above a page: where the page is, the command palette, and the button that creates a box.

import { session } from '../data/live.ts'
import { navigate, path } from '../data/navigation.ts'
import { BOX_TABS, formatBoxPath, parseRoute, WORKSPACE_PAGES } from '../data/routes.ts'
import { showHidden } from '../data/visible-text.ts'
import { Icon } from '../design/icon.tsx'
import { IconButton } from '../design/icon-button.tsx'
import { MenuIcon, PlusIcon } from '../design/icons.ts'
import { CommandPalette } from './command-palette.tsx'

type TopBarProps = { isDrawerOpen: boolean; openDrawer(): void }

export function TopBar({ isDrawerOpen, openDrawer }: TopBarProps) {
  return (
    <header class="topbar">
      <IconButton
        icon={MenuIcon}
        label="Open the navigation"
        class="drawer-button"
        isExpanded={isDrawerOpen}
        onClick={openDrawer}
      />
      <Breadcrumb />
      <span class="spacer" />
      {session.value !== null && (
        <>
          <CommandPalette />
          <button type="button" class="create" onClick={() => navigate('./?create=')}>
            <Icon of={PlusIcon} />
            <span>New box</span>
          </button>
        </>
      )}
    </header>
  )
}

function Breadcrumb() {
  const steps = listSteps(path.value)
  return (
    <nav aria-label="Breadcrumb" class="crumbs">
      <ol>
        {steps.map(({ label, href }, index) => (
          <li key={href}>
            {index === steps.length - 1 ? (
              <span aria-current="page">{label}</span>
            ) : (
              <a href={href}>{label}</a>
            )}
          </li>
        ))}
      </ol>
    </nav>
  )
}

function listSteps(current: string): { label: string; href: string }[] {
  const route = parseRoute(current)
  const home = { label: 'Boxes', href: './' }
  if (route.page === 'workspace')
    return [{ label: WORKSPACE_PAGES[route.name], href: `workspace/${route.name}` }]
  if (route.page !== 'box') return [home]
  const box = { label: showHidden(route.name), href: formatBoxPath(route.name) }
  const tab = { label: BOX_TABS[route.tab], href: formatBoxPath(route.name, route.tab) }
  return route.tab === 'overview' ? [home, box] : [home, box, tab]
}
