// Short facts beside each other, each in a frame of its own.

export const Chips = ({ texts }: { texts: readonly string[] }) => (
  <ul class="chips">
    {texts.map((text) => (
      <li key={text} class="chip">
        {text}
      </li>
    ))}
  </ul>
)
