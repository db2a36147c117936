/** A field for the words by which a list is filtered: they count with Enter, or when the field is left. */

import { type ReactNode, type RefObject, useEffect, useRef } from "react";

const MOST = 500;

interface Props {
  name: string; // what the field is, for those who cannot see it
  placeholder: string;
  value: string; // by which the list is filtered now
  onWords: (words: string, left: boolean) => void;
  field?: RefObject<HTMLInputElement | null>;
}

export function WordsField({ name, placeholder, value, onWords, field }: Props): ReactNode {
  const own = useRef<HTMLInputElement>(null);
  const box = field ?? own;
  useEffect(() => {
    if (box.current) box.current.value = value; // the same field, so that the focus stays in it
  }, [box, value]);
  const given = (left: boolean): void => {
    const words = box.current?.value.trim() ?? "";
    if (words !== value) onWords(words, left);
  };
  return (
    <input
      ref={box}
      type="search"
      className="words"
      placeholder={placeholder}
      aria-label={name}
      defaultValue={value}
      maxLength={MOST}
      onKeyDown={(event) => {
        if (event.key === "Enter") given(false);
      }}
      onBlur={() => given(true)}
    />
  );
}
