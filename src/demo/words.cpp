#include "demo/words.h"

#include "base/error.h"

#include <sstream>

namespace myxtts {
namespace {

constexpr const char* english =
    "apple river window garden morning silver quiet little orange paper yellow mountain winter summer house "
    "water bridge letter music kitchen friend valley market forest candle mirror pocket basket travel listen "
    "answer question number simple gentle bright heavy empty narrow golden purple frozen wooden broken hidden "
    "walks speaks writes follows carries watches opens closes counts builds paints sings waits moves turns "
    "under over beside behind before after between around never always often again today slowly softly quickly "
    "the a and but with from into about every some many few this that his her our their one two three five six "
    "seven eight nine ten village teacher doctor sailor farmer painter writer child mother father sister brother "
    "clock table chair lamp bread honey juice cloud storm star moon fox horse zebra lion queen king voice word";

// clang-format off
constexpr const char* persian =
    "سلام آب باد خاک آتش کتاب خانه پنجره باغ صبح شب روز ماه خورشید ستاره کوه دریا رود جنگل درخت گل برگ میوه سیب "
    "انار نان نمک قند چای شیر عسل پدر مادر برادر خواهر دوست معلم شاعر نویسنده نقاش کودک مرد زن شهر روستا بازار "
    "خیابان کوچه پل مدرسه دانشگاه کلاس قلم دفتر نامه پاسخ پرسش صدا حرف واژه جمله زبان فارسی ایران تهران شیراز "
    "اصفهان تبریز بزرگ کوچک زیبا روشن تاریک آرام تند سبز آبی زرد سفید سیاه سرخ می‌رود "
    "می‌آید "
    "می‌گوید "
    "می‌نویسد "
    "می‌خواند می‌بیند می‌شنود می‌سازد نمی‌داند خانه‌ها کتاب‌ها درخت‌ها ستاره‌ها از به با در بر "
    "تا "
    "که "
    "و اما هر "
    "این آن یک دو سه چهار پنج شش هفت هشت نه ده امروز دیروز فردا همیشه هرگز گاهی ژاله غزال ظهر ضرب صابون طلا ذهن "
    "ثانیه حوض عصر فصل قصه گنج لحظه چراغ پروانه مسئله";
constexpr const char* german =
    "apfel fluss fenster garten morgen silber leise kleine papier gelb berg winter sommer haus wasser brücke brief "
    "musik küche freund tal markt wald kerze spiegel tasche korb reise antwort frage zahl einfach hell schwer leer "
    "golden holz geht spricht schreibt folgt trägt öffnet schließt zählt baut singt wartet unter über neben hinter "
    "vor nach zwischen immer nie oft wieder heute langsam schnell der die das und aber mit von ein zwei drei fünf "
    "sechs lehrer arzt bauer kind mutter vater schwester bruder uhr tisch stuhl brot honig wolke sturm stern mond "
    "fuchs pferd löwe königin stimme wort straße grün schön zwölf jahr möchte";
constexpr const char* french =
    "pomme rivière fenêtre jardin matin argent calme petite papier jaune montagne hiver été maison eau pont lettre "
    "musique cuisine ami vallée marché forêt bougie miroir poche panier voyage réponse question nombre simple claire "
    "lourde vide bois marche parle écrit suit porte ouvre ferme compte chante attend sous sur derrière avant après "
    "entre toujours jamais souvent encore demain lentement vite le la et mais avec dans un deux trois cinq six "
    "médecin enfant mère père sœur frère horloge table chaise pain miel nuage orage étoile lune renard cheval lion "
    "reine voix mot rue verte beau nuit huit feuille travail pluie garçon";
constexpr const char* spanish =
    "manzana río ventana jardín mañana plata tranquila pequeña papel amarillo montaña invierno verano casa agua "
    "puente carta música cocina amigo valle mercado bosque vela espejo bolsa cesta viaje respuesta pregunta número "
    "sencillo clara pesada vacía madera camina habla escribe sigue lleva abre cierra cuenta canta espera bajo sobre "
    "detrás antes después entre siempre nunca otra hoy despacio rápido el la y pero con desde uno dos tres cinco "
    "seis maestro médico niño madre padre hermana hermano reloj mesa silla pan miel nube tormenta estrella luna "
    "zorro caballo león reina voz palabra calle verde noche lluvia guitarra";
constexpr const char* italian =
    "mela fiume finestra giardino mattina argento piccola carta giallo montagna inverno estate casa acqua ponte "
    "lettera musica cucina amico valle mercato bosco candela specchio tasca cesto viaggio risposta domanda numero "
    "semplice chiara pesante vuota legno cammina parla scrive segue porta apre chiude conta canta aspetta sotto "
    "sopra dietro prima dopo sempre mai ancora oggi piano veloce il la e ma con uno due tre cinque sei maestro "
    "medico bambino madre padre sorella fratello orologio tavola sedia pane miele nuvola stella luna volpe cavallo "
    "leone regina voce parola strada verde bello notte pioggia foglia gnomo sciarpa";
constexpr const char* portuguese =
    "maçã rio janela jardim manhã prata pequena papel amarelo montanha inverno verão casa água ponte carta música "
    "cozinha amigo vale mercado floresta vela espelho bolsa cesta viagem resposta pergunta número simples clara "
    "pesada vazia madeira anda fala escreve segue leva abre fecha conta canta espera sob sobre atrás antes depois "
    "entre sempre nunca outra hoje devagar rápido o a e mas com um dois três cinco seis professor médico criança "
    "mãe pai irmã irmão relógio mesa cadeira pão mel nuvem tempestade estrela lua raposa cavalo leão rainha voz "
    "palavra rua verde noite chuva coração filho";
constexpr const char* russian =
    "яблоко река окно сад утро серебро тихий маленький бумага жёлтый гора зима лето дом вода мост письмо музыка "
    "кухня друг долина рынок лес свеча зеркало карман корзина путь ответ вопрос число простой светлый тяжёлый "
    "пустой идёт говорит пишет несёт открывает закрывает считает поёт ждёт под над рядом за перед после между "
    "всегда никогда часто снова сегодня медленно быстро и но с из один два три пять шесть учитель врач ребёнок "
    "мать отец сестра брат часы стол стул хлеб мёд облако буря звезда луна лиса лошадь лев царица голос слово "
    "улица зелёный ночь дождь сердце щука чай юг";
// clang-format on

struct WordList {
  std::string language;
  std::vector<std::string> words;
};

const std::vector<WordList>& word_lists() {
  const auto split = [](const char* list) {
    std::istringstream stream(list);
    return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
  };
  static const std::vector<WordList> lists = {{"en", split(english)},    {"fa", split(persian)}, {"de", split(german)},
                                              {"fr", split(french)},     {"es", split(spanish)}, {"it", split(italian)},
                                              {"pt", split(portuguese)}, {"ru", split(russian)}};
  return lists;
}

const std::vector<std::string>& words_of(const std::string& language) {
  for (const WordList& list : word_lists()) {
    if (list.language == language) return list.words;
  }
  reject_input("demo-data", "there is no word list for '{}'", language,
               way_out("there are {}", fmt::join(demo_languages(), ", ")));
}

}  // namespace

std::vector<std::string> demo_languages() {
  std::vector<std::string> languages;
  for (const WordList& list : word_lists()) languages.push_back(list.language);
  return languages;
}

std::vector<std::string> formant_languages() { return {"en", "fa"}; }

std::string demo_sentence(const std::string& language, Random& random) {
  const std::vector<std::string>& words = words_of(language);
  const uint64_t count = 3 + random.below(7);
  const uint64_t comma_after = random.below(2 * count);
  std::string sentence;
  for (uint64_t i = 0; i < count; ++i) {
    sentence += words[random.below(words.size())];
    if (i + 1 == count) break;
    if (i == comma_after) sentence += language == "fa" ? "،" : ",";
    sentence += ' ';
  }
  if (language == "en") sentence[0] = static_cast<char>(std::toupper(sentence[0]));
  return sentence + ".";
}

}  // namespace myxtts
