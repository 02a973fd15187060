// The links of the header. Those of the workspace are in a menu, which fits on narrow screens.
import { useEffect, useRef } from 'preact/hooks'
import { listWorkspacePages } from '../data/access.ts'
import { session } from '../data/live.ts'
import { navigations, path } from '../data/navigation.ts'

export function NavigationMenu() {
  const current = path.value
  return (
    <nav aria-label="Pages">
      <a href="./" aria-current={current === '' ? 'page' : undefined}>
        Boxes
      </a>
      {session.value !== null && (
        <WorkspaceMenu pages={listWorkspacePages(session.value)} current={current} />
      )}
      <a href="docs/guides/cli">The box command</a>
      <a href="docs">API</a>
    </nav>
  )
}

type MenuProps = { pages: readonly (readonly [string, string])[]; current: string }

function WorkspaceMenu({ pages, current }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null)
  const close = () => {
    if (menu.current !== null) menu.current.open = false
  }
  const count = navigations.value
  useEffect(close, [count])
  useEffect(() => {
    const onEvent = (event: Event) => {
      const element = menu.current
      if (!element?.open) return
      if (event instanceof KeyboardEvent) {
        if (event.key !== 'Escape') return
        if (element.contains(document.activeElement)) element.querySelector('summary')?.focus()
        close()
      } else if (event.target instanceof Node && !element.contains(event.target)) close()
    }
    document.addEventListener('click', onEvent)
    document.addEventListener('keydown', onEvent)
    return () => {
      document.removeEventListener('click', onEvent)
      document.removeEventListener('keydown', onEvent)
    }
  }, [])
  return (
    <details class="menu" ref={menu}>
      <summary>Workspace</summary>
      <ul>
        {pages.map(([name, label]) => (
          <li key={name}>
            <a href={`workspace/${name}`} aria-current={current === `workspace/${name}` ? 'page' : undefined}>
              {label}
            </a>
          </li>
        ))}
      </ul>
    </details>
  )
}
