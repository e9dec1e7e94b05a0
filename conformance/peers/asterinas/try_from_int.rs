//! `#[derive(TryFromInt)]`: makes an enum with written-out values from an integer of its representation.

extern crate proc_macro;

use proc_macro::{Delimiter, TokenStream, TokenTree};

#[proc_macro_derive(TryFromInt)]
pub fn try_from_int(input: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = input.into_iter().collect();
    let text = |token: &TokenTree| token.to_string();
    let name = tokens
        .windows(2)
        .find(|pair| text(&pair[0]) == "enum")
        .map(|pair| text(&pair[1]))
        .expect("an enum");
    let representation = tokens
        .iter()
        .map(text)
        .find_map(|token| token.strip_prefix("[repr(")?.strip_suffix(")]").map(str::to_string))
        .expect("a repr");
    let Some(TokenTree::Group(body)) = tokens.iter().rfind(
        |token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
    ) else {
        panic!("an enum has a body");
    };
    let body: Vec<String> = body.stream().into_iter().map(|token| token.to_string()).collect();
    let arms: String = body
        .windows(3)
        .filter(|part| part[1] == "=")
        .map(|part| format!("{} => Ok({name}::{}),", part[2], part[0]))
        .collect();
    format!("impl TryFrom<{representation}> for {name} {{ type Error = (); fn try_from(value: {representation}) -> Result<Self, ()> {{ match value {{ {arms} _ => Err(()) }} }} }}")
        .parse()
        .expect("this is Rust")
}
